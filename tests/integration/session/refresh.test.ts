import { describe, expect, it, spyOn } from 'bun:test';
import type net from 'node:net';
import { messages } from '../../../src/gateway/http/messages.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { BUFFERED, GENERATE, PROXIED_PATH, proxied, type RouteCase } from '../../support/routes.ts';
import {
  accept,
  LOGOUT,
  ME,
  pair,
  REFRESH,
  refreshes,
  reply,
  signOut,
  silence,
} from '../../support/session-calls.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  expectCleared,
  ORIGIN,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  storedTokens,
  type World,
} from '../../support/world.ts';

const RENEWED = { ...pair(2), expires_in: 120 };
const NEW_TOKENS = { svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' };
const EXPIRED = reply(401, { error: { message: 'expired' } });
const STEP_UP = 'Bearer error="insufficient_user_authentication", acr_values="mfa", max_age="300"';

const timing = (response: Response) => response.headers.get('server-timing');
const proxyStatus = (response: Response) => response.headers.get('proxy-status');
const challenge = (response: Response) => response.headers.get('www-authenticate');

/** An upstream's 401 with this challenge. */
const refuse = (header: string) => () =>
  Response.json({ error: { message: 'no' } }, { status: 401, headers: { 'www-authenticate': header } });

function callOf({ calls }: RouteCase): string {
  return calls.join();
}

function send(world: World, { path, options }: RouteCase, cookie: string): Promise<Response> {
  return world.request(path, { ...options, cookie, headers: { 'idempotency-key': 'key-1' } });
}

/** Every kind of route that calls the upstream with the session. */
const ROUTES = [...BUFFERED, GENERATE, proxied('GET'), proxied('HEAD'), proxied('PATCH')];

describe.each(ROUTES)('$name', (route) => {
  const call = callOf(route);
  const isHead = route.options.method === 'HEAD';

  it('refreshes once after a 401, stores the new pair and repeats the call as it was', async () => {
    await using world = startWorld();
    const timed = { headers: { 'server-timing': 'db;dur=12' } };
    world.upstream
      .on(
        call,
        accept('access-2', () => Response.json({ it: 'works' }, timed)),
      )
      .on(REFRESH, reply(200, RENEWED));
    const response = await send(world, route, SIGNED_IN);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(isHead ? '' : '{"it":"works"}');
    expect(response.headers.getSetCookie()).toEqual([
      'svc_music_access=access-2; Path=/; Max-Age=120; HttpOnly; SameSite=Lax',
      'svc_music_refresh=refresh-2; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
    ]);
    expect(timing(response)).toBe('refresh');
    expect(response.headers.get('access-control-expose-headers')).toContain('Server-Timing');
    expect(world.upstream.calls).toEqual([call, REFRESH, call]);
    const [first, refresh, second] = world.upstream.received;
    expect(refresh?.body).toBe('{"refresh_token":"refresh-1"}');
    for (const name of ['content-type', 'accept'])
      expect(refresh?.headers.get(name)).toBe('application/json');
    for (const name of ['authorization', 'cookie', 'origin']) expect(refresh?.headers.get(name)).toBeNull();
    expect(second?.body).toBe(first?.body ?? 'none');
    expect(second?.headers.get('idempotency-key')).toBe(first?.headers.get('idempotency-key') ?? null);
  });

  it('responds 401 and clears both cookies when the refresh is refused', async () => {
    await using world = startWorld();
    world.upstream.on(call, EXPIRED).on(REFRESH, reply(401));
    const response = await send(world, route, SIGNED_IN);
    expect(response.status).toBe(401);
    if (!isHead) expect(await envelopeMessage(response, 401)).toBe(messages.en.sessionEnded);
    expectCleared(response);
    expect(world.upstream.calls).toEqual([call, REFRESH]);
  });

  it.each<[what: string, cookie: string, environment: Environment, status: string | null]>([
    ['without a refresh cookie', ACCESS_ONLY, {}, null],
    ['when the refresh cannot be made', SIGNED_IN, { REFRESH_OUTAGE: 'keep' }, 'destination_unavailable'],
  ])('passes the 401 through and keeps the cookies %s', async (_, cookie, environment, error) => {
    await using world = startWorld(environment);
    world.upstream.on(call, EXPIRED).on(REFRESH, reply(503));
    const response = await send(world, route, cookie);
    expect(response.status).toBe(401);
    if (!isHead) expect(await envelopeMessage(response, 401)).toBe('expired');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(proxyStatus(response)).toBe(error && `music-gateway; error=${error}`);
    expect(timing(response)).toBeNull();
    expect(world.upstream.calls).toEqual(error ? [call, REFRESH] : [call]);
  });

  it('relays a 401 that no new token can repair, and refreshes nothing', async () => {
    await using world = startWorld();
    world.upstream.on(call, refuse(`Basic realm="upstream", ${STEP_UP}, error_uri="http://upstream.test/"`));
    const response = await send(world, route, SIGNED_IN);
    expect(response.status).toBe(401);
    expect(challenge(response)).toBe(STEP_UP);
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(response.headers.get('access-control-expose-headers')).toContain('WWW-Authenticate');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(await response.text()).toBe(isHead ? '' : '{"error":{"message":"no"}}');
    expect(world.upstream.calls).toEqual([call]);
  });
});

// What is the same for every route: session.ts makes the refresh.
describe('a refresh', () => {
  const ROUTE = proxied('PATCH');
  const CALL = callOf(ROUTE);

  it.each<[cookie: string, second: () => Response, calls: string[]]>([
    [SIGNED_IN, EXPIRED, [CALL, REFRESH, CALL]],
    [SIGNED_IN, reply(403), [CALL, REFRESH, CALL]],
    [SIGNED_IN, refuse(STEP_UP), [CALL, REFRESH, CALL]],
    [REFRESH_ONLY, EXPIRED, [REFRESH, CALL]],
  ])(
    'with %s is made once at most: a later refusal passes through with the new pair stored',
    async (cookie, second, calls) => {
      await using world = startWorld();
      const first = refuse('Bearer error="invalid_token"');
      world.upstream
        .on(CALL, ({ headers }) => (headers.get('authorization') === 'Bearer access-2' ? second : first)())
        .on(REFRESH, reply(200, RENEWED));
      const response = await send(world, ROUTE, cookie);
      expect(response.status).toBe(second().status);
      expect(challenge(response)).toBe(second().headers.get('www-authenticate'));
      expect(storedTokens(response)).toEqual(NEW_TOKENS);
      expect(timing(response)).toBe('refresh');
      expect(world.upstream.calls).toEqual(calls);
    },
  );

  it('keeps the new pair when the repeated call fails', async () => {
    await using world = startWorld({ TIMEOUT_STREAM_MS: '1000' });
    world.upstream.on(CALL, accept('access-2', silence)).on(REFRESH, reply(200, RENEWED));
    const response = await send(world, ROUTE, SIGNED_IN);
    await envelopeMessage(response, 502);
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
  });

  it.each([
    ['fails', reply(500, 'oops')],
    ['redirects', () => new Response(null, { status: 307, headers: { location: '/v1/elsewhere' } })],
    ['gives no JSON', () => new Response('welcome')],
    ['gives half a pair', reply(200, { access_token: 'access-2' })],
  ])('ends the session when it %s', async (_, respond) => {
    await using world = startWorld();
    world.upstream.on(CALL, EXPIRED).on(REFRESH, respond);
    const response = await send(world, ROUTE, SIGNED_IN);
    expect(await envelopeMessage(response, 401)).toBe(messages.en.sessionEnded);
    expectCleared(response);
    expect(timing(response)).toBeNull();
    expect(world.upstream.calls).toEqual([CALL, REFRESH]);
  });

  it.each<[outage: string, status: number, refresh: string, level: string]>([
    ['sign-out', 429, 'rejected', 'warn'],
    ['sign-out', 503, 'rejected', 'warn'],
    ['keep', 429, 'unreachable', 'warn'],
    ['keep', 503, 'unreachable', 'warn'],
    ['keep', 400, 'rejected', 'info'],
  ])('with REFRESH_OUTAGE=%s that gets %i is %s', async (outage, status, refresh, level) => {
    await using world = startWorld({ REFRESH_OUTAGE: outage });
    world.upstream.on(CALL, EXPIRED).on(REFRESH, reply(status));
    const isKept = refresh === 'unreachable';
    const response = await send(world, ROUTE, SIGNED_IN);
    expect(await envelopeMessage(response, 401)).toBe(isKept ? 'expired' : messages.en.sessionEnded);
    expect(response.headers.getSetCookie()).toHaveLength(isKept ? 0 : 2);
    expect(proxyStatus(response)).toBe(isKept ? 'music-gateway; error=destination_unavailable' : null);
    const upstream = [{ outcome: 401 }, { call: 'refresh', outcome: status }];
    expect(await world.line({ status: 401 })).toMatchObject({ level, refresh, upstream });
  });

  it.each([
    [SIGNED_IN, 401, 'expired'],
    [REFRESH_ONLY, 502, messages.en.upstreamUnreachable],
  ])('with %s that gets no response keeps the cookies and responds %i', async (cookie, status, message) => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '1000' });
    world.upstream.on(CALL, EXPIRED).on(REFRESH, silence);
    const response = await send(world, ROUTE, cookie);
    expect(await envelopeMessage(response, status)).toBe(message);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(proxyStatus(response)).toBe('music-gateway; error=http_response_timeout');
    expect(timing(response)).toBeNull();
  });

  it.each([200, 403, 429, 500, 503])('is not made after a %i, nor is the call repeated', async (status) => {
    await using world = startWorld();
    world.upstream.on(CALL, () => Response.json({}, { status, headers: { 'server-timing': 'refresh' } }));
    const response = await send(world, ROUTE, SIGNED_IN);
    expect(response.status).toBe(status);
    expect(timing(response)).toBeNull();
    expect(world.upstream.calls).toEqual([CALL]);
  });

  it('is not made with a refresh cookie that is no token, nor is the challenge for a token relayed', async () => {
    await using world = startWorld();
    world.upstream.on(CALL, refuse('Bearer error="invalid_token"'));
    const response = await send(world, ROUTE, `${ACCESS_ONLY}; svc_music_refresh=a%0d%0ab`);
    expect(await envelopeMessage(response, 401)).toBe('no');
    expect(challenge(response)).toBeNull();
    expect(world.upstream.calls).toEqual([CALL]);
  });
});

describe('concurrent requests', () => {
  it('with the same refresh token share one refresh, and all get the new cookies, also when the first client leaves', async () => {
    await using world = startWorld();
    const refresh = Promise.withResolvers<Response>();
    for (const route of ROUTES) world.upstream.on(callOf(route), accept('access-2'));
    world.upstream.on(REFRESH, () => refresh.promise);
    const gone = new AbortController();
    const first = world.request('/api/auth/session', { cookie: SIGNED_IN, signal: gone.signal });
    await world.upstream.arrived(REFRESH);
    const requests = ROUTES.map((route) => send(world, route, SIGNED_IN));
    gone.abort();
    await expect(first).rejects.toThrow();
    for (const route of ROUTES.slice(1)) await world.upstream.arrived(callOf(route));
    await world.upstream.arrived(ME, 2);
    await world.roundTrip();
    refresh.resolve(Response.json(RENEWED));
    for (const response of await Promise.all(requests)) {
      expect(response.status).toBe(200);
      expect(storedTokens(response)).toEqual(NEW_TOKENS);
      expect(timing(response)).toBe('refresh');
    }
    expect(refreshes(world)).toBe(1);
  });
});

it('A response that made no refresh has no Server-Timing, whatever the upstream sends', async () => {
  await using world = startWorld();
  const headers = { 'server-timing': 'refresh' };
  world.upstream.on('GET /v1/music/public/1', () => Response.json({}, { headers })).on(LOGOUT, reply(204));
  for (const path of ['/api/upstream/v1/music/public/1', '/api/auth/session', '/api/health']) {
    expect(timing(await world.request(path))).toBeNull();
  }
  expect(timing(await signOut(world, SIGNED_IN))).toBeNull();
});

describe('the body of a 401', () => {
  const HEAD = 'HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n';

  it.each([
    ['never begins', (socket: net.Socket) => void socket.write(HEAD)],
    ['breaks before its first byte', (socket: net.Socket) => void socket.end(HEAD)],
  ])('that %s does not hold up the refresh', async (_, end) => {
    await using upstream = await startRawUpstream((socket, request) => {
      const text = request.startsWith(REFRESH) ? JSON.stringify(RENEWED) : 'track';
      if (request.includes('Bearer access-1')) end(socket);
      else
        socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request(PROXIED_PATH, { cookie: SIGNED_IN });
    expect(await response.text()).toBe('track');
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
  });

  it.each<[outcome: string, status: number, prepare: (world: World) => unknown]>([
    ['renewed', 200, ({ upstream }) => upstream.on(REFRESH, reply(200, pair(2)))],
    ['rejected', 401, ({ upstream }) => upstream.on(REFRESH, reply(401))],
    ['ended', 401, (world) => signOut(world, SIGNED_IN)],
  ])('is cancelled, which frees its connection, when the session is %s', async (_, status, prepare) => {
    await using world = startWorld();
    world.upstream.on(LOGOUT, reply(204)).on('GET /v1/library', ({ headers }) => {
      if (headers.get('authorization') === 'Bearer access-2') return Response.json({});
      const start = (controller: ReadableStreamDefaultController) => controller.enqueue('wait');
      return new Response(new ReadableStream({ start }), { status: 401 });
    });
    await prepare(world);
    // Otherwise the connection is free when the garbage collector finds the body, which the upstream cannot see.
    using cancel = spyOn(ReadableStreamDefaultReader.prototype, 'cancel');
    expect((await world.request(PROXIED_PATH, { cookie: SIGNED_IN })).status).toBe(status);
    expect(cancel).toHaveBeenCalledTimes(1);
  });
});
