import { describe, expect, it } from 'bun:test';
import { messages } from '../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  expectCleared,
  ORIGIN,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  type World,
} from '../support/world.ts';

const LOGOUT = 'POST /v1/auth/logout';
const REFRESH = 'POST /v1/auth/refresh';
/** Nothing listens there. */
const CLOSED = 'http://127.0.0.1:1';

describe('POST /api/auth/logout', () => {
  it('tells the upstream both tokens and clears both cookies', async () => {
    await using world = startWorld();
    world.upstream.on(LOGOUT, () => new Response(null, { status: 204 }));
    const response = await signOut(world, SIGNED_IN);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.text()).toBe('{"ok":true}');
    expectCleared(response);
    expect(world.upstream.calls).toEqual([LOGOUT]);
    const { headers, body } = world.upstream.last(LOGOUT);
    expect(headers.get('authorization')).toBe('Bearer access-1');
    expect(headers.get('accept')).toBe('application/json');
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('cookie')).toBeNull();
    expect(headers.get('origin')).toBeNull();
    expect(body).toBe('{"refresh_token":"refresh-1"}');
  });

  it('clears Secure cookies in production', async () => {
    await using world = startWorld({ NODE_ENV: 'production' });
    const response = await signOut(world);
    expect(response.status).toBe(200);
    expect(response.headers.getSetCookie()).toEqual([
      'svc_music_access=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax',
      'svc_music_refresh=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax',
    ]);
  });

  it.each([
    ['no session cookie', undefined],
    ['only the access cookie', ACCESS_ONLY],
    ['only the refresh cookie', REFRESH_ONLY],
    ['an empty access cookie', 'svc_music_access=; svc_music_refresh=refresh-1'],
    ['only other cookies', 'theme=dark'],
    ['a session cookie twice', `${SIGNED_IN}; ${SIGNED_IN}`],
    ['the refresh cookie twice', `${SIGNED_IN}; svc_music_refresh=refresh-2`],
  ])('with %s clears both cookies and tells the upstream nothing', async (_, cookie) => {
    await using world = startWorld();
    const response = await signOut(world, cookie);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('{"ok":true}');
    expectCleared(response);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['application/json', '{"refresh_token":"from-the-browser"}'],
    ['application/json', '{'],
    ['text/plain', 'bye'],
  ])('takes no notice of a body, such as %s %s', async (contentType, body) => {
    await using world = startWorld();
    world.upstream.on(LOGOUT, () => Response.json({}));
    const response = await world.request('/api/auth/logout', {
      method: 'POST',
      cookie: SIGNED_IN,
      headers: { 'content-type': contentType },
      body,
    });
    expect(response.status).toBe(200);
    expectCleared(response);
    expect(world.upstream.last(LOGOUT).body).toBe('{"refresh_token":"refresh-1"}');
  });

  it.each([400, 401, 403, 404, 429, 500, 503])(
    'signs out here when the upstream answers %i, without a refresh or another try',
    async (status) => {
      await using world = startWorld();
      world.upstream.on(LOGOUT, () =>
        Response.json({ error: { message: 'upstream text' } }, { status, headers: { 'set-cookie': 'a=b' } }),
      );
      const response = await signOut(world, SIGNED_IN);
      expect(response.status).toBe(200);
      expect(await response.text()).toBe('{"ok":true}');
      expectCleared(response);
      expect(world.upstream.calls).toEqual([LOGOUT]);
    },
  );

  it('follows no redirect with the tokens', async () => {
    await using world = startWorld();
    const location = `${world.upstream.upstreamUrl}/v1/elsewhere`;
    world.upstream.on(LOGOUT, () => new Response(null, { status: 307, headers: { location } }));
    const response = await signOut(world, SIGNED_IN);
    expect(response.status).toBe(200);
    expectCleared(response);
    expect(world.upstream.calls).toEqual([LOGOUT]);
  });

  it('signs out here when the upstream cannot be reached', async () => {
    await using world = startWorld({ UPSTREAM_URL: CLOSED });
    const response = await signOut(world, SIGNED_IN);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('{"ok":true}');
    expectCleared(response);
    expect(world.log.join()).not.toMatch(/access-1|refresh-1/);
  });

  it('signs out here when the upstream does not answer in time', async () => {
    await using world = startWorld({ TIMEOUT_LOGOUT_MS: '50' });
    const never = Promise.withResolvers<Response>();
    world.upstream.on(LOGOUT, () => never.promise);
    const response = await signOut(world, SIGNED_IN);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('{"ok":true}');
    expectCleared(response);
    expect(world.upstream.calls).toEqual([LOGOUT]);
    never.resolve(new Response());
  });

  it('signs out here when the upstream closes the connection', async () => {
    await using upstream = await startRawUpstream((socket) => socket.destroy());
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await signOut(world, SIGNED_IN);
    expect(response.status).toBe(200);
    expectCleared(response);
  });

  it.each([
    ['missing', null],
    ['not allowed', 'https://elsewhere.test'],
    ['allowed but for its port', `${ORIGIN}:81`],
  ])('answers 403, and keeps the session, when the Origin is %s', async (_, origin) => {
    await using world = startWorld();
    const response = await world.request('/api/auth/logout', { method: 'POST', origin, cookie: SIGNED_IN });
    expect(await envelopeMessage(response, 403)).toBe(messages.originNotAllowed.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('POST /api/auth/logout with SIGN_OUT_REVOKES', () => {
  const ENVIRONMENT = { SIGN_OUT_REVOKES: 'true' };

  /** An upstream whose logout responds with these statuses, one after the other. */
  function startRevoking(...logouts: number[]): World {
    const world = startWorld(ENVIRONMENT);
    world.upstream
      .on(REFRESH, () => Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }))
      .on(LOGOUT, () => new Response(null, { status: logouts.shift() ?? 204 }));
    return world;
  }

  async function expectSignedOut(response: Response): Promise<void> {
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('{"ok":true}');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('server-timing')).toBeNull();
    expectCleared(response);
  }

  it.each<[what: string, cookie: string | undefined, logouts: number[], calls: string[]]>([
    ['only the refresh cookie', REFRESH_ONLY, [], [REFRESH, LOGOUT]],
    ['an expired access token', SIGNED_IN, [401], [LOGOUT, REFRESH, LOGOUT]],
    ['an access token that works', SIGNED_IN, [], [LOGOUT]],
    ['a logout that fails with 500', SIGNED_IN, [500], [LOGOUT]],
    ['a logout that is refused with 403', SIGNED_IN, [403], [LOGOUT]],
    ['a new pair that is refused too', SIGNED_IN, [401, 401], [LOGOUT, REFRESH, LOGOUT]],
    ['only the access cookie', ACCESS_ONLY, [], []],
    ['no session cookie', undefined, [], []],
    ['a session cookie twice', `${SIGNED_IN}; ${REFRESH_ONLY}`, [], []],
  ])('with %s refreshes once at most', async (_, cookie, logouts, calls) => {
    await using world = startRevoking(...logouts);
    await expectSignedOut(await signOut(world, cookie));
    expect(world.upstream.calls).toEqual(calls);
    if (!calls.includes(REFRESH)) return;
    expect(world.upstream.last(REFRESH).body).toBe('{"refresh_token":"refresh-1"}');
    expect(world.upstream.last(LOGOUT).headers.get('authorization')).toBe('Bearer access-2');
    expect(world.upstream.last(LOGOUT).body).toBe('{"refresh_token":"refresh-2"}');
  });

  it.each<[what: string, refreshed: () => Response | Promise<Response>]>([
    ['refused', () => new Response('', { status: 400 })],
    ['malformed', () => Response.json({ access_token: 'access-2' })],
    ['late', () => new Promise(() => {})],
  ])('signs out here when the refresh is %s', async (_, refreshed) => {
    await using world = startWorld({ ...ENVIRONMENT, TIMEOUT_SIGN_IN_MS: '50' });
    world.upstream.on(REFRESH, refreshed);
    await expectSignedOut(await signOut(world, REFRESH_ONLY));
    expect(world.upstream.calls).toEqual([REFRESH]);
    expect(world.log).toEqual([]);
  });

  it('signs out here when the upstream cannot be reached', async () => {
    await using world = startWorld({ ...ENVIRONMENT, UPSTREAM_URL: CLOSED });
    await expectSignedOut(await signOut(world, REFRESH_ONLY));
  });

  it('signs out here when there is no place for the refresh', async () => {
    await using world = startRevoking();
    const { sessions } = world.admission;
    while (sessions.inUse < sessions.limit) sessions.take();
    await expectSignedOut(await signOut(world, REFRESH_ONLY));
    expect(world.upstream.calls).toEqual([]);
  });

  it('does not bring the session back here', async () => {
    await using world = startRevoking();
    await signOut(world, REFRESH_ONLY);
    const response = await world.request('/api/music/models', { cookie: REFRESH_ONLY });
    expect(await envelopeMessage(response, 401)).toBe(messages.sessionEnded.en);
    expectCleared(response);
    expect(world.upstream.calls).toEqual([REFRESH, LOGOUT]);
  });

  it('does not repeat a refresh that is under way, whose late pair is signed out', async () => {
    await using world = startRevoking();
    const refreshed = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => refreshed.promise);
    const models = world.request('/api/music/models', { cookie: REFRESH_ONLY });
    await world.upstream.arrived(REFRESH);
    await expectSignedOut(await signOut(world, REFRESH_ONLY));
    refreshed.resolve(Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }));
    expect((await models).status).toBe(401);
    expect(world.upstream.calls).toEqual([REFRESH, LOGOUT]);
    expect(world.upstream.last(LOGOUT).body).toBe('{"refresh_token":"refresh-2"}');
  });

  it.each([
    [204, [LOGOUT]],
    [401, [LOGOUT, REFRESH, LOGOUT]],
  ])('signs out the newest pair of a spent token, whose logout responds with %i', async (status, calls) => {
    await using world = startRevoking(status);
    world.upstream.on('GET /v1/models', () => Response.json([]));
    await world.request('/api/music/models', { cookie: REFRESH_ONLY });
    const before = world.upstream.calls.length;
    world.upstream.on(REFRESH, () => Response.json({ access_token: 'access-3', refresh_token: 'refresh-3' }));
    await expectSignedOut(await signOut(world, REFRESH_ONLY));
    const since = world.upstream.received.slice(before);
    expect(world.upstream.calls.slice(before)).toEqual(calls);
    expect(since.map(({ body }) => body)).toEqual(
      [
        '{"refresh_token":"refresh-2"}',
        '{"refresh_token":"refresh-2"}',
        '{"refresh_token":"refresh-3"}',
      ].slice(0, calls.length),
    );
  });

  it('goes on when the client has gone', async () => {
    await using world = startRevoking();
    const refreshed = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => refreshed.promise);
    const client = new AbortController();
    const options = { method: 'POST', cookie: REFRESH_ONLY, signal: client.signal };
    const gone = world.request('/api/auth/logout', options);
    await world.upstream.arrived(REFRESH);
    client.abort();
    await expect(gone).rejects.toThrow();
    refreshed.resolve(Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }));
    await world.upstream.arrived(LOGOUT);
    expect(world.upstream.last(LOGOUT).body).toBe('{"refresh_token":"refresh-2"}');
  });
});

function signOut(world: World, cookie?: string): Promise<Response> {
  return world.request('/api/auth/logout', { method: 'POST', ...(cookie === undefined ? {} : { cookie }) });
}
