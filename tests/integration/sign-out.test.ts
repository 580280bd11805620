import { describe, expect, it } from 'bun:test';
import { messages } from '../../src/http/messages.ts';
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

function signOut(world: World, cookie?: string): Promise<Response> {
  return world.request('/api/auth/logout', { method: 'POST', ...(cookie === undefined ? {} : { cookie }) });
}
