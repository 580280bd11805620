import { describe, expect, it, spyOn } from 'bun:test';
import { CALL_BYTES } from '../../src/gateway/settings/memory.ts';
import { eventually } from '../support/eventually.ts';
import { endless, expectRefused, fill, GENERATE, PLAYBACK, PROXY, waiting } from '../support/long-calls.ts';
import { RawConnection, rawRequest } from '../support/raw-http.ts';
import { ACCESS_ONLY, expectCleared, ORIGIN, SIGNED_IN, startWorld } from '../support/world.ts';

const SIGN_IN = { json: { code: 'c', code_verifier: 'v'.repeat(43) } };

describe.each([GENERATE, PROXY, PLAYBACK])('$name beyond MAX_IN_FLIGHT_REQUESTS', ({ call, send }) => {
  it('gets 503 with Retry-After and Proxy-Status, forwards nothing, and is served when a call has ended', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '2' });
    const released = waiting(world, call);
    const inFlight = [send(world), send(world)];
    await world.upstream.arrived(call, 2);
    await expectRefused(await send(world));
    expect(world.upstream.calls).toEqual([call, call]);
    released.resolve();
    for (const response of await Promise.all(inFlight)) expect(await response.text()).toBe('done');
    expect((await send(world)).status).toBe(200);
  });

  it('leaves health, session check, models, sign-in and sign-out alone', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const released = waiting(world, call);
    for (const read of ['GET /v1/me', 'GET /v1/models']) world.upstream.on(read, () => Response.json({}));
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token: 'r' }));
    const inFlight = send(world);
    await world.upstream.arrived(call);
    const others = await Promise.all([
      world.request('/api/health'),
      world.request('/api/auth/session', { cookie: ACCESS_ONLY }),
      world.request('/api/music/models', { cookie: ACCESS_ONLY }),
      world.request('/api/auth/idp', SIGN_IN),
      world.request('/api/auth/logout', { method: 'POST' }),
    ]);
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    released.resolve();
    await inFlight;
  });
});

describe('a call whose client has gone', () => {
  it('is in flight until its upstream has responded, when it is a generation', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const released = waiting(world, GENERATE.call);
    const client = new AbortController();
    const left = GENERATE.send(world, { signal: client.signal }).catch(() => {});
    await world.upstream.arrived(GENERATE.call);
    client.abort();
    await left;
    // When a later request has been served, the gateway knows that the client has gone.
    await world.request('/api/health');
    await expectRefused(await GENERATE.send(world));
    released.resolve();
    await eventually(() => !world.admission.streams.inUse, 'the calls to end');
    expect((await GENERATE.send(world)).status).toBe(200);
  });

  it('is in flight until its body is given up', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const cancelled = Promise.withResolvers<void>();
    world.upstream.on(PROXY.call, () => endless(cancelled.resolve));
    const client = new AbortController();
    const streaming = await PROXY.send(world, { signal: client.signal });
    await streaming.body?.getReader().read();
    await expectRefused(await PROXY.send(world));
    client.abort();
    await cancelled.promise;
    const next = await PROXY.send(world);
    expect(next.status).toBe(200);
    await next.body?.cancel();
  });
});

describe('request bodies that do not come to their end', () => {
  it('take no place from anybody', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const { requestBodies } = world.admission;
    world.upstream.on(GENERATE.call, () => new Response('audio'));
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
    ['session checks', 'reads', '/api/auth/session', { cookie: ACCESS_ONLY }],
    ['models', 'reads', '/api/music/models', { cookie: ACCESS_ONLY }],
    ['a sign-in before its code is spent', 'sessions', '/api/auth/idp', SIGN_IN],
    ['public playback', 'streams', '/api/upstream/v1/music/public/1', {}],
  ] as const)('refuses %s', async (_, pool, path, options) => {
    await using world = startWorld();
    fill(world.admission[pool]);
    await expectRefused(await world.request(path, options));
    expect(world.upstream.calls).toEqual([]);
    expect(world.admission.perSession.size).toBe(0);
  });

  it.each([
    ['a sign-in', 'identityProvider', '/api/auth/idp'],
    ['a generation', 'streams', '/api/music/generate'],
    ['a call that changes something', 'streams', '/api/upstream/v1/library'],
  ] as const)('refuses %s before its body is read', async (_, pool, path) => {
    await using world = startWorld();
    fill(world.admission[pool]);
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n`;
    const more = 'Connection: close\r\nContent-Length: 100\r\n\r\n{';
    const { status } = await rawRequest(world.port, head + more);
    expect(status).toBe(503);
  });

  it('lets a sign-out wait for a place, and clear the cookies when it finds none', async () => {
    await using world = startWorld({ TIMEOUT_LOGOUT_MS: '1000' });
    const { signOuts, ledger } = world.admission;
    world.upstream.on('POST /v1/auth/logout', () => new Response());
    const signOut = (cookie: string) => world.request('/api/auth/logout', { method: 'POST', cookie });
    fill(signOuts);
    const response = await signOut(SIGNED_IN);
    expect(response.status).toBe(200);
    expectCleared(response);
    expect(world.upstream.calls).toEqual([]);
    // There has to be memory for it, too.
    fill(ledger);
    const inUse = ledger.inUse;
    using succeeds = spyOn(ledger, 'succeeds');
    const waiting = signOut('svc_music_access=access-9; svc_music_refresh=refresh-9');
    await eventually(() => succeeds.mock.calls.length, 'the sign-out to wait');
    ledger.release(inUse);
    await eventually(() => ledger.inUse >= CALL_BYTES, 'the sign-out to have memory');
    signOuts.release(1);
    expect((await waiting).status).toBe(200);
    expect(world.upstream.last('POST /v1/auth/logout').body).toBe('{"refresh_token":"refresh-9"}');
  });

  it('counts the wait of a sign-out for a place in its deadline', async () => {
    await using world = startWorld({ TIMEOUT_LOGOUT_MS: '1000' });
    const { signOuts } = world.admission;
    world.upstream.on('POST /v1/auth/logout', () => new Promise<Response>(() => {}));
    fill(signOuts);
    const waiting = world.request('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    await Bun.sleep(500);
    signOuts.release(1);
    expect((await waiting).status).toBe(200);
    const line = await world.line({ route: '/api/auth/logout' });
    expect(line).toMatchObject({ upstream: [{ call: 'sign-out', outcome: 'http_response_timeout' }] });
    expect(JSON.stringify(line['upstream'])).toMatch(/"ms":[2-8]\d\d[.}]/);
  });

  it('signs nobody out: a refresh without a place leaves the cookies as they are', async () => {
    await using world = startWorld();
    fill(world.admission.sessions);
    world.upstream.on('GET /v1/me', () => new Response('', { status: 401 }));
    const check = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(check.status).toBe(401);
    expect(check.headers.get('retry-after')).toBe('5');
    expect(check.headers.get('proxy-status')).toBe('music-gateway; error=connection_limit_reached');
    expect(check.headers.getSetCookie()).toEqual([]);
  });

  it('of sign-ins at a slow identity provider leaves session checks and refreshes alone', async () => {
    await using world = startWorld();
    const { identityProvider } = world.admission;
    const released = waiting(world, 'POST /oauth/token', () => new Response('', { status: 400 }));
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === 'Bearer a2' ? Response.json({}) : new Response('', { status: 401 }),
    );
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'a2', refresh_token: 'r2' }),
    );
    const signIn = world.request('/api/auth/idp', SIGN_IN);
    await world.upstream.arrived('POST /oauth/token');
    fill(identityProvider);
    await expectRefused(await world.request('/api/auth/idp', SIGN_IN));
    expect((await world.request('/api/auth/session', { cookie: SIGNED_IN })).status).toBe(200);
    released.resolve();
    expect((await signIn).status).toBe(400);
    expect(identityProvider.inUse).toBe(identityProvider.limit - 1);
  });
});

describe('public playback', () => {
  it('leaves a quarter of MAX_IN_FLIGHT_REQUESTS to users', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '4' });
    fill(world.admission.streams, 1);
    world.upstream.on(GENERATE.call, () => new Response('audio'));
    await expectRefused(await PLAYBACK.send(world));
    expect((await GENERATE.send(world)).status).toBe(200);
  });
});
