import { describe, expect, it } from 'bun:test';
import type net from 'node:net';
import { messages } from '../../../src/gateway/http/messages.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { releasedBody } from '../../support/released-body.ts';
import { BUFFERED, GENERATE, PROXIED_PATH, proxied, type RouteCase } from '../../support/routes.ts';
import { accept, ME, pair, REFRESH, refreshes, reply, silence } from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  expectCleared,
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

/** Every kind of route that calls the upstream with the session. */
const PATCH = { ...proxied('PATCH'), options: { method: 'PATCH', body: '{"is_public":true}' } };
const ROUTES: readonly RouteCase[] = [...BUFFERED, GENERATE, proxied('GET'), proxied('HEAD'), PATCH];

/** An upstream's 401 with this challenge. */
const refuse = (header: string) => () =>
  Response.json({ error: { message: 'no' } }, { status: 401, headers: { 'www-authenticate': header } });

function callOf({ calls }: RouteCase): string {
  return calls.join();
}
const CALL = callOf(PATCH);

function send(world: World, { path, options }: RouteCase, cookie = SIGNED_IN): Promise<Response> {
  return world.request(path, { ...options, cookie, headers: { 'idempotency-key': 'key-1' } });
}

type Respond = () => Response | Promise<Response>;

const headerOf = (response: Response, name: string) => response.headers.get(name);

describe('after a 401', () => {
  it.each([GENERATE, PATCH])('$name is repeated as it was, once the new pair is stored', async (route) => {
    await using world = startWorld();
    const call = callOf(route);
    const timed = { headers: { 'server-timing': 'db;dur=12' } };
    const works = () => Response.json({ it: 'works' }, timed);
    world.upstream.on(call, accept('access-2', works)).on(REFRESH, reply(200, RENEWED));
    const response = await send(world, route);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('{"it":"works"}');
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
    expect(response.headers.getSetCookie()[0]).toContain('; Max-Age=120;');
    expect(headerOf(response, 'server-timing')).toBe('refresh');
    expect(headerOf(response, 'access-control-expose-headers')).toContain('Server-Timing');
    expect(world.upstream.calls).toEqual([call, REFRESH, call]);
    const [first, refresh, second] = world.upstream.received;
    expect(refresh?.body).toBe('{"refresh_token":"refresh-1"}');
    for (const name of ['content-type', 'accept'])
      expect(refresh?.headers.get(name)).toBe('application/json');
    for (const name of ['authorization', 'cookie', 'origin']) expect(refresh?.headers.get(name)).toBeNull();
    expect(first?.body).toContain(route === PATCH ? 'is_public' : 'taarab');
    expect(second?.body).toBe(first?.body ?? '');
    expect(second?.headers.get('idempotency-key')).toBe('key-1');
  });

  it('all routes share one refresh and get the new cookies, also when the first client leaves', async () => {
    await using world = startWorld();
    const refresh = Promise.withResolvers<Response>();
    for (const route of ROUTES) world.upstream.on(callOf(route), accept('access-2'));
    world.upstream.on(REFRESH, () => refresh.promise);
    const gone = new AbortController();
    const first = world.request('/api/auth/session', { cookie: SIGNED_IN, signal: gone.signal });
    await world.upstream.arrived(REFRESH);
    const requests = ROUTES.map((route) => send(world, route));
    gone.abort();
    await expect(first).rejects.toThrow();
    for (const route of ROUTES.slice(1)) await world.upstream.arrived(callOf(route));
    await world.upstream.arrived(ME, 2);
    await world.roundTrip();
    refresh.resolve(Response.json(RENEWED));
    for (const response of await Promise.all(requests)) {
      expect(response.status).toBe(200);
      expect(storedTokens(response)).toEqual(NEW_TOKENS);
      expect(headerOf(response, 'server-timing')).toBe('refresh');
    }
    expect(refreshes(world)).toBe(1);
  });

  it.each<[cookie: string, second: Respond, status: number, first: string[]]>([
    [SIGNED_IN, EXPIRED, 401, [CALL]],
    [SIGNED_IN, reply(403), 403, [CALL]],
    [SIGNED_IN, refuse(STEP_UP), 401, [CALL]],
    [SIGNED_IN, silence, 502, [CALL]],
    [REFRESH_ONLY, EXPIRED, 401, []],
  ])(
    'one refresh is made at most, whose pair is kept when the repeated call fails: %s, %p, %i',
    async (cookie, second, status, first) => {
      await using world = startWorld({ TIMEOUT_STREAM_MS: '1000' });
      const invalid = refuse('Bearer error="invalid_token"');
      world.upstream
        .on(CALL, ({ headers }) => (headers.get('authorization') === 'Bearer access-2' ? second : invalid)())
        .on(REFRESH, reply(200, RENEWED));
      const response = await send(world, PATCH, cookie);
      expect(response.status).toBe(status);
      if (status === 401)
        expect(headerOf(response, 'www-authenticate')).toBe(second === EXPIRED ? null : STEP_UP);
      expect(storedTokens(response)).toEqual(NEW_TOKENS);
      expect(world.upstream.calls).toEqual([...first, REFRESH, CALL]);
    },
  );

  const [KEEP, DROP] = [{ REFRESH_OUTAGE: 'keep' }, { REFRESH_OUTAGE: 'sign-out' }];
  const [AWAY, LATE] = ['destination_unavailable', 'http_response_timeout'];

  it.each<[Environment, what: string, respond: Respond, level: string, keptWith: string | undefined]>([
    [KEEP, 'is refused', reply(401), 'info', undefined],
    [KEEP, 'is malformed', reply(400), 'info', undefined],
    [KEEP, 'redirects', () => Response.redirect('/v1/elsewhere', 307), 'info', undefined],
    [KEEP, 'gives no JSON', () => new Response('welcome'), 'info', undefined],
    [KEEP, 'gives half a pair', reply(200, { access_token: 'access-2' }), 'info', undefined],
    [DROP, 'fails', reply(500, 'oops'), 'warn', undefined],
    [DROP, 'comes too often', reply(429), 'warn', undefined],
    [KEEP, 'fails', reply(503), 'warn', AWAY],
    [KEEP, 'comes too often', reply(429), 'warn', AWAY],
    [{ ...DROP, TIMEOUT_SIGN_IN_MS: '1000' }, 'gets no response', silence, 'info', LATE],
  ])(
    'with %j a refresh that %s ends the session or keeps it',
    async (environment, _, respond, level, keptWith) => {
      await using world = startWorld(environment);
      world.upstream.on(CALL, EXPIRED).on(REFRESH, respond);
      const response = await send(world, PATCH);
      expect(await envelopeMessage(response, 401)).toBe(keptWith ? 'expired' : messages.en.sessionEnded);
      if (keptWith) expect(response.headers.getSetCookie()).toEqual([]);
      else expectCleared(response);
      const status = keptWith ? `music-gateway; error=${keptWith}` : null;
      expect([headerOf(response, 'proxy-status'), headerOf(response, 'server-timing')]).toEqual([
        status,
        null,
      ]);
      expect(world.upstream.calls).toEqual([CALL, REFRESH]);
      const line = await world.line({ status: 401 });
      expect(line).toMatchObject({ level, refresh: keptWith ? 'unreachable' : 'rejected' });
    },
  );
});

describe('no refresh is made', () => {
  const world = sharedWorld();

  it.each([ACCESS_ONLY, `${ACCESS_ONLY}; svc_music_refresh=a%0d%0ab`])(
    'without a refresh token, nor is the challenge for a token relayed: %s',
    async (cookie) => {
      world.upstream.on(CALL, refuse('Bearer error="invalid_token"'));
      const response = await send(world, PATCH, cookie);
      expect(await envelopeMessage(response, 401)).toBe('no');
      expect(response.headers.getSetCookie()).toEqual([]);
      expect([headerOf(response, 'www-authenticate'), headerOf(response, 'proxy-status')]).toEqual([
        null,
        null,
      ]);
      expect(world.upstream.calls).toEqual([CALL]);
    },
  );

  it.each(ROUTES)('after a 401 that no new token can repair, which $name relays', async (route) => {
    const header = `Basic realm="upstream", ${STEP_UP}, error_uri="http://upstream.test/"`;
    world.upstream.on(callOf(route), refuse(header));
    const response = await send(world, route);
    expect(response.status).toBe(401);
    expect(headerOf(response, 'www-authenticate')).toBe(STEP_UP);
    expect(headerOf(response, 'access-control-expose-headers')).toContain('WWW-Authenticate');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(await response.text()).toBe(route.options.method === 'HEAD' ? '' : '{"error":{"message":"no"}}');
    expect(world.upstream.calls).toEqual([callOf(route)]);
  });

  it.each([200, 403, 429, 500, 503])('after a %i, nor may the upstream claim one', async (status) => {
    const respond = () => Response.json({}, { status, headers: { 'server-timing': 'refresh' } });
    world.upstream.on(CALL, respond).on('GET /v1/music/public/1', respond);
    for (const response of [
      await send(world, PATCH),
      await world.request('/api/upstream/v1/music/public/1'),
    ]) {
      expect(response.status).toBe(status);
      expect(headerOf(response, 'server-timing')).toBeNull();
    }
    expect(world.upstream.calls).toEqual([CALL, 'GET /v1/music/public/1']);
  });
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

  it.each([200, 401])(
    'is cancelled, which frees its connection, when the refresh gets %i',
    async (status) => {
      await using world = startWorld();
      const { stream, release, cancelled } = releasedBody();
      release('wait');
      const endless = () => new Response(stream, { status: 401 });
      world.upstream
        .on(CALL, ({ headers }) =>
          (headers.get('authorization') === 'Bearer access-2' ? reply(200) : endless)(),
        )
        .on(REFRESH, reply(status, RENEWED));
      expect((await send(world, PATCH)).status).toBe(status);
      await cancelled;
    },
  );
});
