import { describe, expect, it, jest, spyOn } from 'bun:test';
import { LADDER } from '../../src/gateway/admission/ladder.ts';
import { eventually } from '../support/eventually.ts';
import { expectOverloaded, fill, send } from '../support/long-calls.ts';
import { RawConnection } from '../support/raw-http.ts';
import {
  GENERATE,
  OWN_FORM,
  PROXIED_PATH,
  proxied,
  ROUTES,
  SIGN_IN_ROUTE,
  scriptRoutes,
} from '../support/routes.ts';
import { accept, cookies, LOGOUT, pair, REFRESH, reply, silence } from '../support/session-calls.ts';
import { rawCall } from '../support/shared-world.ts';
import { ACCESS_ONLY, expectCleared, ORIGIN, REFRESH_ONLY, SIGNED_IN, startWorld } from '../support/world.ts';

type Pool = 'identityProvider' | 'sessions' | 'signOuts' | 'reads' | 'streams' | 'ledger';

const EXPIRED = 'GET /v1/expired';
const SIGN_OUT = { path: '/api/auth/logout', options: { method: 'POST', cookie: SIGNED_IN } };
/** Each has a session of its own. */
const CALLS = [
  ...ROUTES,
  { name: 'sign-out', ...SIGN_OUT, calls: [LOGOUT] },
  // Its first call is made before it needs the refresh.
  { name: 'refresh', path: '/api/upstream/v1/expired', options: {}, calls: [REFRESH] },
].map((call, index) => ({ ...call, options: { ...call.options, cookie: cookies(index + 10) } }));
const READS = ['session check', 'models'];
const GENERATES = /^generate/;
const STREAMS = CALLS.map(({ name }) => name).filter((name) => /generate|proxied|public|refresh/.test(name));

// What each kind of call may use: unit/admission.test.ts. Which kind a route makes, and what is left alone: here.
it.each<[pool: Pool, share: number, refused: string[]]>([
  ['identityProvider', 249 / 250, []],
  ['identityProvider', 1, ['sign-in']],
  ['sessions', 1, ['sign-in', 'refresh']],
  ['signOuts', 1, ['sign-out']],
  ['reads', 1, READS],
  ['streams', 3 / 4, ['public playback']],
  ['streams', 1, STREAMS],
  ['ledger', LADDER.guest.share, ['public playback']],
  ['ledger', LADDER.user.share, STREAMS.filter((name) => !GENERATES.test(name))],
  // The first sign-ins are served for as long as sessions are: unit/request-body.test.ts has the others.
  ['ledger', LADDER.order.share, STREAMS],
  ['ledger', LADDER.session.share, CALLS.map(({ name }) => name)],
])('a full pool refuses its own calls alone, before they are sent: %s (%d)', async (pool, share, refused) => {
  await using world = startWorld({ TIMEOUT_LOGOUT_MS: '1000' }, undefined, 256 * 1024 ** 2);
  const { admission, upstream } = world;
  scriptRoutes(world);
  upstream.on(EXPIRED, accept('access-2')).on(REFRESH, reply(200, pair(2)));
  const room = admission[pool];
  const inUse = Math.ceil(room.limit * share);
  room.inUse += inUse;
  const outcomes = CALLS.map(async (call) => {
    const response = await send(world, call);
    const { status, headers } = response;
    if (call.path === SIGN_OUT.path) expectCleared(response);
    else if (!refused.includes(call.name)) expect(status).toBe(200);
    else if (call.name !== 'refresh' || pool !== 'sessions') await expectOverloaded(response);
    else {
      // Nobody is signed out because a refresh has no place.
      const limit = 'music-gateway; error=connection_limit_reached';
      expect([status, headers.get('retry-after'), headers.get('proxy-status')]).toEqual([401, '5', limit]);
      expect(headers.getSetCookie()).toEqual([]);
    }
  });
  await Promise.all(outcomes);
  await world.settled();
  const logged = world.lines.filter(({ status }) => status === 503).map(({ pool: name }) => name);
  const named = pool === 'ledger' ? ['memory', 'sign_in_body', 'order_body', 'relayed_body'] : [room.name];
  for (const name of logged) expect(name).toBeOneOf(named);
  const served = CALLS.filter(({ name }) => !refused.includes(name)).flatMap(({ calls }) => calls);
  expect(new Set(upstream.calls.filter((call) => call !== EXPIRED))).toEqual(new Set(served));
  expect(admission.perSession.size).toBe(0);
  room.inUse -= inUse;
  for (const call of CALLS) expect((await send(world, call)).status).toBe(200);
});

describe('beyond the limit of its session', () => {
  const LIMITS = { MAX_IN_FLIGHT_PER_SESSION: '1', MAX_GENERATIONS_PER_SESSION: '1' };
  const routes = ROUTES.filter(({ credentials }) => credentials);

  it('a call gets 429, and other sessions are served', async () => {
    await using world = startWorld(LIMITS);
    scriptRoutes(world);
    const { perSession } = world.admission;
    const busy = await world.admission.enter('generation', 'access-1', { permit: undefined });
    for (const route of routes) {
      // A session is known by its access token, whatever its refresh token is.
      for (const cookie of [ACCESS_ONLY, `${ACCESS_ONLY}; svc_music_refresh=made-up`])
        await expectOverloaded(await send(world, route, { cookie }), 429);
    }
    expect(world.upstream.calls).toEqual([]);
    await world.settled();
    expect(new Set(world.lines.map(({ pool }) => pool))).toEqual(new Set(['one_session']));
    for (const route of routes) expect((await send(world, route, { cookie: cookies(9) })).status).toBe(200);
    busy.release();
    for (const route of routes) expect((await send(world, route)).status).toBe(200);
    expect(perSession.size).toBe(0);
    // Without an access token, it is known by its refresh token.
    await world.admission.enter('generation', 'refresh-1', { permit: undefined });
    await expectOverloaded(await send(world, proxied('GET'), { cookie: REFRESH_ONLY }), 429);
  });

  it('a call gets 429 also when the session was renewed, so that made-up tokens get no further', async () => {
    await using world = startWorld(LIMITS);
    world.upstream.on(REFRESH, reply(200, pair(2)));
    const released = Promise.withResolvers<Response>();
    const whenReleased = accept('access-2', () => released.promise);
    world.upstream.on('POST /v1/music', whenReleased);
    const cookieOf = (access: string) => `svc_music_access=${access}; svc_music_refresh=refresh-1`;
    const first = send(world, GENERATE, { cookie: cookieOf('made-up-1') });
    await world.upstream.arrived('POST /v1/music', 2);
    const second = await send(world, GENERATE, { cookie: cookieOf('made-up-2') });
    expect(second.headers.getSetCookie().join()).toContain('svc_music_access=access-2;');
    await expectOverloaded(second, 429);
    released.resolve(new Response('done'));
    expect((await first).status).toBe(200);
    expect(world.admission.perSession.size).toBe(0);
  });
});

describe('a place', () => {
  it('is taken from when the body of a request has arrived until its response has ended', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const { relayedBodies } = world.admission;
    const route = proxied('GET');
    const released = Promise.withResolvers<void>();
    world.upstream.on('GET /v1/library', () => released.promise.then(() => new Response('done')));
    const head = `Host: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\nContent-Length: 100\r\n\r\n{`;
    const connections = Array.from({ length: 20 }, () => new RawConnection(world.port));
    for (const connection of connections) connection.send(`POST ${PROXIED_PATH} HTTP/1.1\r\n${head}`);
    await eventually(() => relayedBodies.usedBytes >= connections.length * 16 * 1024, 'the bodies');
    const inFlight = send(world, route);
    await world.upstream.arrived('GET /v1/library');
    await expectOverloaded(await send(world, route));
    released.resolve();
    expect(await (await inFlight).text()).toBe('done');
    expect((await send(world, route)).status).toBe(200);
    for (const connection of connections) connection.reset();
    await eventually(() => !relayedBodies.usedBytes, 'the budget to be free');
  });

  it.each([
    ['identityProvider', SIGN_IN_ROUTE],
    ['streams', GENERATE],
    ['streams', OWN_FORM],
    ['streams', proxied('POST')],
  ] as const)('that is missing (%s) refuses a request before its body is read: $name', async (pool, call) => {
    await using world = startWorld();
    fill(world.admission[pool]);
    const begun = { cookie: ACCESS_ONLY, lines: ['Content-Length: 100'], body: '{' };
    expect((await rawCall(world, `POST ${call.path}`, begun)).status).toBe(503);
  });

  it('is waited for by a sign-out within the deadline of its call', async () => {
    await using world = startWorld({ TIMEOUT_LOGOUT_MS: '10000' });
    const { signOuts, ledger } = world.admission;
    world.upstream.on(LOGOUT, silence);
    fill(signOuts);
    jest.useFakeTimers();
    const signedOut = send(world, SIGN_OUT);
    while (!ledger.inUse) await new Promise(setImmediate);
    jest.advanceTimersByTime(7000);
    signOuts.release();
    await world.upstream.arrived(LOGOUT);
    jest.advanceTimersByTime(3000);
    expect((await signedOut).status).toBe(200);
    const upstream = [{ call: 'sign-out', outcome: 'http_response_timeout' }];
    expect(await world.line({ route: SIGN_OUT.path })).toMatchObject({ upstream });
  });
});

it('beyond the end of the ledger every response ends its connection, with all of its body', async () => {
  await using world = startWorld();
  scriptRoutes(world);
  const { ledger } = world.admission;
  using isOvercharged = spyOn(ledger, 'isOvercharged').mockReturnValue(true);
  for (const { path, options } of ROUTES) {
    const response = await world.request(path, options);
    expect([path, response.headers.get('connection')]).toEqual([path, 'close']);
    await response.bytes();
  }
  isOvercharged.mockRestore();
  expect((await send(world, proxied('GET'))).headers.get('connection')).toBeNull();
});
