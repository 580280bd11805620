import { afterEach, describe, expect, it } from 'bun:test';
import { Window } from 'happy-dom';
import { ORIGIN, startWorld, type World } from '../support/world.ts';

const PAIR = { access_token: 'access-1', refresh_token: 'refresh-1', expires_in: 60 };
const SIGN_IN = JSON.stringify({ code: 'a-code', code_verifier: 'v'.repeat(43) });
const JSON_TYPE = { 'Content-Type': 'application/json' };

const windows: Window[] = [];
afterEach(async () => {
  for (const window of windows.splice(0)) await window.happyDOM.close();
});

/** A page of a web app on its own origin. */
function openPage(origin: string): Window {
  const window = new Window({ url: `${origin}/` });
  windows.push(window);
  return window;
}

/** A page that has signed in, as the web app does after the redirect from the identity provider. */
async function openSignedIn(world: World): Promise<Window> {
  world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
  world.upstream.on('POST /v1/auth/idp', () => Response.json(PAIR));
  const page = openPage(ORIGIN);
  const response = await page.fetch(`${world.url}/api/auth/idp`, {
    method: 'POST',
    credentials: 'include',
    headers: JSON_TYPE,
    body: SIGN_IN,
  });
  expect(JSON.parse(await response.text())).toEqual({ ok: true });
  return page;
}

describe('a web app on its own origin', () => {
  it('signs in, and its scripts see neither cookie nor token', async () => {
    await using world = startWorld();
    const page = await openSignedIn(world);
    expect(page.document.cookie).toBe('');
    world.upstream.on('GET /v1/me', () => Response.json({ data: { name: 'Ada' } }));
    const session = await page.fetch(`${world.url}/api/auth/session`, {
      credentials: 'include',
    });
    expect(JSON.parse(await session.text())).toEqual({ data: { name: 'Ada' } });
    expect(world.upstream.last('GET /v1/me').headers.get('authorization')).toBe('Bearer access-1');
    expect(session.headers.get('set-cookie')).toBeNull();
  });

  it('is not signed in when it leaves the cookies out', async () => {
    await using world = startWorld();
    const page = await openSignedIn(world);
    const session = await page.fetch(`${world.url}/api/auth/session`, { credentials: 'omit' });
    expect(JSON.parse(await session.text())).toEqual({ authenticated: false });
  });

  it('generates after a preflight, with its Idempotency-Key, and reads the audio and its headers', async () => {
    await using world = startWorld();
    const page = await openSignedIn(world);
    world.upstream.on(
      'POST /v1/music',
      () => new Response('audio', { headers: { 'x-music-creation-id': '7', 'content-type': 'audio/wav' } }),
    );
    const response = await page.fetch(`${world.url}/api/music/generate`, {
      method: 'POST',
      credentials: 'include',
      headers: { ...JSON_TYPE, 'Idempotency-Key': 'key-1' },
      body: JSON.stringify({ model: 'm', prompt: 'p', music_length_ms: 30_000 }),
    });
    expect(await response.text()).toBe('audio');
    expect(response.headers.get('x-music-creation-id')).toBe('7');
    expect(world.upstream.last('POST /v1/music').headers.get('idempotency-key')).toBe('key-1');
  });

  it('changes a creation through the proxy with PATCH, which needs a preflight', async () => {
    await using world = startWorld();
    const page = await openSignedIn(world);
    world.upstream.on('PATCH /v1/music/creations/7', () => Response.json({ id: '7', is_public: true }));
    const response = await page.fetch(`${world.url}/api/upstream/v1/music/creations/7`, {
      method: 'PATCH',
      credentials: 'include',
      headers: JSON_TYPE,
      body: '{"is_public":true}',
    });
    expect(JSON.parse(await response.text())).toEqual({ id: '7', is_public: true });
  });

  it('goes on without noticing when the access token has expired, also with five calls at once', async () => {
    await using world = startWorld();
    const page = await openSignedIn(world);
    const refresh = Promise.withResolvers<Response>();
    for (const path of ['me', 'models', 'balance', 'creations', 'activity']) {
      world.upstream.on(`GET /v1/${path}`, ({ headers }) =>
        headers.get('authorization') === 'Bearer access-2'
          ? Response.json({ path })
          : new Response('', { status: 401 }),
      );
    }
    world.upstream.on('POST /v1/auth/refresh', () => refresh.promise);
    const paths = [
      'auth/session',
      'music/models',
      'upstream/v1/balance',
      'upstream/v1/creations',
      'upstream/v1/activity',
    ];
    const calls = paths.map((path) => page.fetch(`${world.url}/api/${path}`, { credentials: 'include' }));
    for (const path of ['me', 'models', 'balance', 'creations', 'activity']) {
      await world.upstream.arrived(`GET /v1/${path}`);
    }
    await world.roundTrip();
    refresh.resolve(Response.json({ ...PAIR, access_token: 'access-2', refresh_token: 'refresh-2' }));
    for (const response of await Promise.all(calls)) expect(response.status).toBe(200);
    expect(world.upstream.calls.filter((call) => call === 'POST /v1/auth/refresh')).toHaveLength(1);

    const later = await page.fetch(`${world.url}/api/auth/session`, { credentials: 'include' });
    expect(JSON.parse(await later.text())).toEqual({ path: 'me' });
    expect(world.upstream.last('GET /v1/me').headers.get('authorization')).toBe('Bearer access-2');
  });

  it('reads the message of an error', async () => {
    await using world = startWorld();
    const response = await openPage(ORIGIN).fetch(`${world.url}/api/music/models`, {
      credentials: 'include',
    });
    expect(response.status).toBe(401);
    expect(JSON.parse(await response.text())).toEqual({ error: { message: 'You are not signed in.' } });
  });

  it('is signed out for good after signing out', async () => {
    await using world = startWorld();
    const page = await openSignedIn(world);
    world.upstream.on('POST /v1/auth/logout', () => new Response());
    await page.fetch(`${world.url}/api/auth/logout`, { method: 'POST', credentials: 'include' });
    const session = await page.fetch(`${world.url}/api/auth/session`, { credentials: 'include' });
    expect(JSON.parse(await session.text())).toEqual({ authenticated: false });
  });
});

describe('a page on a foreign origin', () => {
  it.each(['http://evil.test', `${ORIGIN}.evil.test`, 'https://studio.test'])(
    'at %s reads nothing',
    async (origin) => {
      await using world = startWorld();
      const page = openPage(origin);
      await expect(page.fetch(`${world.url}/api/auth/session`, { credentials: 'include' })).rejects.toThrow();
      const preflighted = page.fetch(`${world.url}/api/upstream/v1/music/creations/7`, {
        method: 'PATCH',
        credentials: 'include',
        headers: JSON_TYPE,
        body: '{}',
      });
      await expect(preflighted).rejects.toThrow();
      expect(world.upstream.received).toEqual([]);
    },
  );
});
