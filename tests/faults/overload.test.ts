import { describe, expect, it } from 'bun:test';
import type { Admission } from '../../src/gateway/http/admission/admission.ts';
import { eventually } from '../support/eventually.ts';
import { endless, expectRefused, fill, GENERATE, PLAYBACK, PROXY, waiting } from '../support/long-calls.ts';
import { RawConnection, rawRequest } from '../support/raw-http.ts';
import {
  accept,
  cookies,
  LOGOUT,
  ME,
  pair,
  REFRESH,
  reply,
  silence,
  TOKEN,
} from '../support/session-calls.ts';
import {
  ACCESS_ONLY,
  expectCleared,
  ORIGIN,
  REFRESH_ONLY,
  type RequestOptions,
  SIGNED_IN,
  startWorld,
  storedTokens,
  type World,
} from '../support/world.ts';

type Send = (world: World, options?: RequestOptions) => Promise<Response>;
type Pool = {
  [Key in keyof Admission]: Admission[Key] extends Admission['reads'] ? Key : never;
}[keyof Admission];

const at =
  (path: string, fixed: RequestOptions): Send =>
  (world, options) =>
    world.request(path, { ...fixed, ...options });
const SIGN_IN = at('/api/auth/idp', { json: { code: 'c', code_verifier: 'v'.repeat(43) } });
const SESSION_CHECK = at('/api/auth/session', { cookie: ACCESS_ONLY });
const MODELS = at('/api/music/models', { cookie: ACCESS_ONLY });
const PROXIED_POST = at('/api/upstream/v1/slow', { cookie: ACCESS_ONLY, method: 'POST' });

function scriptAll({ upstream }: World): void {
  for (const call of [
    ME,
    'GET /v1/models',
    PROXY.call,
    'POST /v1/slow',
    GENERATE.call,
    PLAYBACK.call,
    LOGOUT,
  ])
    upstream.on(call, () => Response.json({}));
  upstream.on(TOKEN, reply(200, { access_token: 'identity' })).on('POST /v1/auth/idp', reply(200, pair(1)));
}

// What each kind of call may use: unit/admission. Which kind a route makes: here.
describe('beyond its limit', () => {
  it.each<[name: string, send: Send, pool: Pool, share: number]>([
    ['session check', SESSION_CHECK, 'reads', 1],
    ['models', MODELS, 'reads', 1],
    ['sign-in', SIGN_IN, 'identityProvider', 1],
    ['sign-in before its code is spent', SIGN_IN, 'sessions', 1],
    ['sign-in', SIGN_IN, 'ledger', 1],
    ['a generation', GENERATE.send, 'streams', 1],
    ['a generation', GENERATE.send, 'ledger', 31 / 32],
    ['a proxied GET', PROXY.send, 'streams', 1],
    ['a proxied GET', PROXY.send, 'ledger', 3 / 4],
    ['a proxied POST', PROXIED_POST, 'streams', 1],
    ['a proxied POST', PROXIED_POST, 'ledger', 3 / 4],
    ['public playback', PLAYBACK.send, 'streams', 3 / 4],
    ['public playback', PLAYBACK.send, 'ledger', 1 / 2],
  ])('%s gets 503 and is not forwarded (%p, %s: %d), and is served later', async (_, send, pool, share) => {
    await using world = startWorld({}, undefined, 256 * 1024 ** 2);
    scriptAll(world);
    const budget = world.admission[pool];
    const inUse = budget.limit * share;
    budget.take(inUse);
    await expectRefused(await send(world));
    expect(world.upstream.calls).toEqual([]);
    expect(world.admission.perSession.size).toBe(0);
    budget.release(inUse);
    expect((await send(world)).status).toBe(200);
  });

  it('of its session a call gets 429, and other sessions are served', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '1', MAX_GENERATIONS_PER_SESSION: '1' });
    scriptAll(world);
    const call = { isGeneration: true, bodyBytes: 0 };
    const busy = world.admission.perSession.join('access-1', call);
    const routes = [SESSION_CHECK, MODELS, GENERATE.send, PROXY.send, PROXIED_POST];
    for (const send of routes) {
      await expectRefused(await send(world), 429);
      // A session is known by its access token, whatever its refresh token is.
      const cookie = 'svc_music_access=access-1; svc_music_refresh=made-up';
      await expectRefused(await send(world, { cookie }), 429);
    }
    expect(world.upstream.calls).toEqual([]);
    for (const send of routes) expect((await send(world, { cookie: cookies(9) })).status).toBe(200);
    world.admission.perSession.leave(busy, call);
    for (const send of routes) expect((await send(world)).status).toBe(200);
    expect(world.admission.perSession.size).toBe(0);
  });

  it('of its session a call with its refresh token alone gets 429', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '1' });
    world.admission.perSession.join('refresh-1', { isGeneration: false, bodyBytes: 0 });
    await expectRefused(await PROXY.send(world, { cookie: REFRESH_ONLY }), 429);
  });

  it('of the session that it was renewed with a call gets 429, so that made-up tokens get no further', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '1' });
    world.upstream.on(REFRESH, reply(200, pair(2)));
    const released = Promise.withResolvers<Response>();
    world.upstream.on(
      GENERATE.call,
      accept('access-2', () => released.promise),
    );
    const cookieOf = (access: string) => `svc_music_access=${access}; svc_music_refresh=refresh-1`;
    const first = GENERATE.send(world, { cookie: cookieOf('made-up-1') });
    await world.upstream.arrived(GENERATE.call, 2);
    const second = await GENERATE.send(world, { cookie: cookieOf('made-up-2') });
    expect(storedTokens(second)['svc_music_access']).toBe('access-2');
    await expectRefused(second, 429);
    released.resolve(new Response('done'));
    expect((await first).status).toBe(200);
    expect(world.admission.perSession.size).toBe(0);
  });
});

describe('a call in flight', () => {
  it('takes a place until it has ended, and leaves the short calls alone', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '2' });
    scriptAll(world);
    const released = waiting(world, PROXY.call);
    const inFlight = [PROXY.send(world), PROXY.send(world)];
    await world.upstream.arrived(PROXY.call, 2);
    await expectRefused(await PROXY.send(world));
    const signOut = at('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    for (const send of [at('/api/health', {}), SESSION_CHECK, MODELS, SIGN_IN, signOut])
      expect((await send(world)).status).toBe(200);
    released.resolve();
    for (const response of await Promise.all(inFlight)) expect(await response.text()).toBe('done');
    expect((await PROXY.send(world)).status).toBe(200);
  });

  it('keeps its place until its body is given up, when its client has gone', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const cancelled = Promise.withResolvers<void>();
    world.upstream.on(PROXY.call, () => endless(cancelled.resolve));
    const client = new AbortController();
    const streaming = await PROXY.send(world, { signal: client.signal });
    await streaming.body?.getReader().read();
    await expectRefused(await PROXY.send(world));
    client.abort();
    await cancelled.promise;
    await eventually(() => !world.admission.streams.inUse, 'the place to be free');
  });

  it('takes no place before its body has arrived', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const { requestBodies } = world.admission;
    scriptAll(world);
    const head = `POST /api/auth/idp HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nContent-Length: 100\r\n\r\n{`;
    const connections = Array.from({ length: 20 }, () => new RawConnection(world.port));
    for (const connection of connections) await connection.send(head);
    await eventually(() => requestBodies.usedBytes >= connections.length * 16 * 1024, 'the bodies');
    expect((await GENERATE.send(world)).status).toBe(200);
    for (const connection of connections) connection.reset();
    await eventually(() => !requestBodies.usedBytes, 'the budget to be free');
  });
});

describe('a full pool', () => {
  it.each([
    ['a sign-in', 'identityProvider', '/api/auth/idp'],
    ['a generation', 'streams', '/api/music/generate'],
    ['a call that changes something', 'streams', '/api/upstream/v1/library'],
  ] as const)('refuses %s before its body is read', async (_, pool, path) => {
    await using world = startWorld();
    fill(world.admission[pool]);
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n`;
    const { status } = await rawRequest(
      world.port,
      `${head}Connection: close\r\nContent-Length: 100\r\n\r\n{`,
    );
    expect(status).toBe(503);
  });

  it('lets a sign-out wait for a place, and clear the cookies when it finds none', async () => {
    await using world = startWorld({ TIMEOUT_LOGOUT_MS: '1000' });
    fill(world.admission.signOuts);
    const response = await world.request('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expectCleared(response);
    expect(world.upstream.calls).toEqual([]);
  });

  it('counts the wait of a sign-out for a place in its deadline', async () => {
    await using world = startWorld({ TIMEOUT_LOGOUT_MS: '2000' });
    const { signOuts } = world.admission;
    world.upstream.on(LOGOUT, silence);
    fill(signOuts);
    const startedAt = performance.now();
    const signedOut = world.request('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    await eventually(() => performance.now() - startedAt > 1000, 'half of the deadline to pass');
    signOuts.release(1);
    expect((await signedOut).status).toBe(200);
    const line = await world.line({ route: '/api/auth/logout' });
    expect(line).toMatchObject({ upstream: [{ call: 'sign-out', outcome: 'http_response_timeout' }] });
    expect(line['durationMs']).toBeLessThan(2900);
  });

  it('signs nobody out: a refresh without a place leaves the cookies as they are', async () => {
    await using world = startWorld();
    fill(world.admission.sessions);
    world.upstream.on(ME, reply(401));
    const check = await SESSION_CHECK(world, { cookie: SIGNED_IN });
    expect(check.status).toBe(401);
    expect(check.headers.get('retry-after')).toBe('5');
    expect(check.headers.get('proxy-status')).toBe('music-gateway; error=connection_limit_reached');
    expect(check.headers.getSetCookie()).toEqual([]);
  });

  it('of sign-ins at a slow identity provider leaves session checks and refreshes alone', async () => {
    await using world = startWorld();
    const { identityProvider } = world.admission;
    const released = waiting(world, TOKEN, reply(400));
    world.upstream.on(ME, accept('access-2')).on(REFRESH, reply(200, pair(2)));
    const signIn = SIGN_IN(world);
    await world.upstream.arrived(TOKEN);
    fill(identityProvider);
    expect((await SESSION_CHECK(world, { cookie: SIGNED_IN })).status).toBe(200);
    released.resolve();
    expect((await signIn).status).toBe(400);
    expect(identityProvider.inUse).toBe(identityProvider.limit - 1);
  });
});
