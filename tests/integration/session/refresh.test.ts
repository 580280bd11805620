import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { BUFFERED, GENERATE, proxied } from '../../support/routes.ts';
import {
  accept,
  checkSession,
  expectRefused,
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
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  storedTokens,
  type World,
} from '../../support/world.ts';

const RENEWED = { ...pair(2), expires_in: 120 };
const NEW_TOKENS = { svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' };
const EXPIRED = reply(401, { error: { message: 'expired' } });

/** Every kind of route that calls the upstream with the session. */
const ROUTES = [...BUFFERED, GENERATE, proxied('GET'), proxied('PATCH')].map(
  ({ name, path, calls, options }) => {
    return {
      name,
      path,
      call: calls.join(),
      options: { ...options, headers: { 'idempotency-key': 'key-1' } },
    };
  },
);

const timing = (response: Response) => response.headers.get('server-timing');
const proxyStatus = (response: Response) => response.headers.get('proxy-status');

describe.each(ROUTES)('$name', ({ path, call, options }) => {
  const send = (world: World, cookie: string) => world.request(path, { ...options, cookie });

  it('refreshes once after a 401, stores the new pair and repeats the call as it was', async () => {
    await using world = startWorld();
    const timed = { headers: { 'server-timing': 'db;dur=12' } };
    world.upstream.on(
      call,
      accept('access-2', () => Response.json({ it: 'works' }, timed)),
    );
    world.upstream.on(REFRESH, reply(200, RENEWED));
    const response = await send(world, SIGNED_IN);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ it: 'works' });
    expect(response.headers.getSetCookie()).toEqual([
      'svc_music_access=access-2; Path=/; Max-Age=120; HttpOnly; SameSite=Lax',
      'svc_music_refresh=refresh-2; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
    ]);
    expect(timing(response)).toBe('refresh');
    expect(response.headers.get('access-control-expose-headers')).toContain('Server-Timing');
    expect(world.upstream.calls).toEqual([call, REFRESH, call]);
    const [first, refresh, second] = world.upstream.received;
    expect(refresh?.body).toBe('{"refresh_token":"refresh-1"}');
    expect(refresh?.headers.get('content-type')).toBe('application/json');
    expect(refresh?.headers.get('accept')).toBe('application/json');
    for (const name of ['authorization', 'cookie', 'origin']) expect(refresh?.headers.get(name)).toBeNull();
    expect(second?.body).toBe(first?.body ?? 'none');
    expect(second?.headers.get('idempotency-key')).toBe(first?.headers.get('idempotency-key') ?? null);
  });

  it.each([
    [SIGNED_IN, 401, [call, REFRESH, call]],
    [SIGNED_IN, 403, [call, REFRESH, call]],
    [REFRESH_ONLY, 401, [REFRESH, call]],
  ])(
    'with %s refreshes at most once: a later %i passes through with the new pair stored',
    async (cookie, status, calls) => {
      await using world = startWorld();
      world.upstream.on(call, ({ headers }) =>
        headers.get('authorization') === 'Bearer access-2'
          ? Response.json({ error: { message: 'still no' } }, { status })
          : EXPIRED(),
      );
      world.upstream.on(REFRESH, reply(200, RENEWED));
      const response = await send(world, cookie);
      expect(await envelopeMessage(response, status)).toBe('still no');
      expect(storedTokens(response)).toEqual(NEW_TOKENS);
      expect(timing(response)).toBe('refresh');
      expect(world.upstream.calls).toEqual(calls);
    },
  );

  it('keeps the new pair when the repeated call fails', async () => {
    await using world = startWorld({ TIMEOUT_READ_MS: '300', TIMEOUT_STREAM_MS: '300' });
    world.upstream.on(call, accept('access-2', silence)).on(REFRESH, reply(200, RENEWED));
    const response = await send(world, SIGNED_IN);
    await envelopeMessage(response, 502);
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
  });

  it.each([
    ['is refused', reply(401, { error: { message: 'revoked' } })],
    ['fails', reply(500, 'oops')],
    ['redirects', () => new Response(null, { status: 307, headers: { location: '/v1/elsewhere' } })],
    ['gives no JSON', () => new Response('welcome')],
    ['gives half a pair', reply(200, { access_token: 'access-2' })],
    ['gives a token that no header can carry', reply(200, { ...RENEWED, access_token: 'a b' })],
  ])('responds 401 and clears both cookies when the refresh %s', async (_, refusal) => {
    await using world = startWorld();
    world.upstream.on(call, reply(401)).on(REFRESH, refusal);
    const response = await send(world, SIGNED_IN);
    expect(await envelopeMessage(response, 401)).toBe(messages.en.sessionEnded);
    expectCleared(response);
    expect(timing(response)).toBeNull();
    expect(world.upstream.calls).toEqual([call, REFRESH]);
  });

  it('does not send a refused token again when the client ignores its cleared cookies', async () => {
    await using world = startWorld();
    world.upstream.on(call, reply(401)).on(REFRESH, reply(401));
    await send(world, SIGNED_IN);
    const again = await send(world, SIGNED_IN);
    expect(await envelopeMessage(again, 401)).toBe(messages.en.sessionEnded);
    expectCleared(again);
    expect(world.upstream.calls).toEqual([call, REFRESH, call]);
  });

  it.each<[outage: string, status: number, refresh: string, level: string]>([
    ['sign-out', 429, 'rejected', 'warn'],
    ['sign-out', 503, 'rejected', 'warn'],
    ['keep', 429, 'unreachable', 'warn'],
    ['keep', 503, 'unreachable', 'warn'],
    ['keep', 400, 'rejected', 'info'],
  ])('with REFRESH_OUTAGE=%s takes a refresh that gets %i for %s', async (outage, status, refresh, level) => {
    await using world = startWorld({ REFRESH_OUTAGE: outage });
    world.upstream.on(call, EXPIRED).on(REFRESH, reply(status));
    const isKept = refresh === 'unreachable';
    const response = await send(world, SIGNED_IN);
    expect(await envelopeMessage(response, 401)).toBe(isKept ? 'expired' : messages.en.sessionEnded);
    expect(response.headers.getSetCookie()).toHaveLength(isKept ? 0 : 2);
    expect(proxyStatus(response)).toBe(isKept ? 'music-gateway; error=destination_unavailable' : null);
    const upstream = [{ outcome: 401 }, { call: 'refresh', outcome: status }];
    expect(await world.line({ status: 401 })).toMatchObject({ level, refresh, upstream });
  });

  it.each([429, 503])('with REFRESH_OUTAGE=keep renews the session when the %i is over', async (status) => {
    await using world = startWorld({ REFRESH_OUTAGE: 'keep' });
    world.upstream.on(call, reply(200, { data: [] })).on(REFRESH, reply(status));
    const failed = await send(world, REFRESH_ONLY);
    await expectRefused(failed, 502, 'upstreamUnreachable');
    expect(proxyStatus(failed)).toBe('music-gateway; error=destination_unavailable');
    expect(world.upstream.calls).toEqual([REFRESH]);
    world.upstream.on(REFRESH, reply(200, RENEWED));
    const renewed = await send(world, REFRESH_ONLY);
    expect(renewed.status).toBe(200);
    expect(storedTokens(renewed)).toEqual(NEW_TOKENS);
    expect(world.upstream.calls).toEqual([REFRESH, REFRESH, call]);
    expect(world.upstream.last(REFRESH).body).toBe('{"refresh_token":"refresh-1"}');
  });

  it('does not refresh without a refresh cookie: the 401 passes through', async () => {
    await using world = startWorld();
    world.upstream.on(call, EXPIRED);
    const response = await send(world, ACCESS_ONLY);
    expect(await envelopeMessage(response, 401)).toBe('expired');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(proxyStatus(response)).toBeNull();
    expect(timing(response)).toBeNull();
    expect(world.upstream.calls).toEqual([call]);
  });

  it.each([
    [SIGNED_IN, 401, 'expired'],
    [REFRESH_ONLY, 502, messages.en.upstreamUnreachable],
  ])(
    'with %s keeps the cookies and responds %i when the refresh gets no response',
    async (cookie, status, message) => {
      await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '1000' });
      world.upstream.on(call, EXPIRED).on(REFRESH, silence);
      const response = await send(world, cookie);
      expect(await envelopeMessage(response, status)).toBe(message);
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(proxyStatus(response)).toBe('music-gateway; error=http_response_timeout');
      expect(timing(response)).toBeNull();
    },
  );

  it.each([200, 403, 429, 500, 503])('neither refreshes nor repeats after %i', async (status) => {
    await using world = startWorld();
    const body = { error: { message: 'no' } };
    world.upstream.on(call, () => Response.json(body, { status, headers: { 'server-timing': 'refresh' } }));
    const response = await send(world, SIGNED_IN);
    expect(response.status).toBe(status);
    expect(timing(response)).toBeNull();
    expect(world.upstream.calls).toEqual([call]);
  });
});

describe('concurrent requests', () => {
  it('with the same refresh token share one refresh, and all get the new cookies', async () => {
    await using world = startWorld();
    const refresh = Promise.withResolvers<Response>();
    for (const { call } of ROUTES) world.upstream.on(call, accept('access-2'));
    world.upstream.on(REFRESH, () => refresh.promise);
    const requests = Array.from({ length: 6 }, () =>
      ROUTES.map(({ path, options }) => world.request(path, { ...options, cookie: SIGNED_IN })),
    ).flat();
    for (const { call } of ROUTES) await world.upstream.arrived(call, 6);
    await world.roundTrip();
    refresh.resolve(Response.json(RENEWED));
    for (const response of await Promise.all(requests)) {
      expect(response.status).toBe(200);
      expect(storedTokens(response)).toEqual(NEW_TOKENS);
      expect(timing(response)).toBe('refresh');
    }
    expect(refreshes(world)).toBe(1);
  });

  it('with different refresh tokens refresh apart', async () => {
    await using world = startWorld();
    world.upstream.on(ME, ({ headers }) => {
      const token = headers.get('authorization') ?? '';
      return token.includes('new') ? new Response(token) : new Response('', { status: 401 });
    });
    world.upstream.on(REFRESH, ({ body }) => {
      const { refresh_token: spent } = JSON.parse(body);
      return Response.json({ access_token: `new-of-${spent}`, refresh_token: `next-of-${spent}` });
    });
    const users = ['ada', 'ben'];
    const send = (user: string) => checkSession(world, `svc_music_access=old; svc_music_refresh=${user}`);
    for (const [index, response] of (await Promise.all(users.map(send))).entries()) {
      const user = users[index];
      expect(await response.text()).toBe(`Bearer new-of-${user}`);
      const tokens = { svc_music_access: `new-of-${user}`, svc_music_refresh: `next-of-${user}` };
      expect(storedTokens(response)).toEqual(tokens);
    }
  });

  it('get the new pair although the client that began the refresh has disconnected', async () => {
    await using world = startWorld();
    const refresh = Promise.withResolvers<Response>();
    world.upstream.on(ME, accept('access-2')).on(REFRESH, () => refresh.promise);
    const gone = new AbortController();
    const first = world.request('/api/auth/session', { cookie: SIGNED_IN, signal: gone.signal });
    await world.upstream.arrived(REFRESH);
    const second = checkSession(world, SIGNED_IN);
    gone.abort();
    await expect(first).rejects.toThrow();
    await world.upstream.arrived(ME, 2);
    await world.roundTrip();
    refresh.resolve(Response.json(RENEWED));
    const response = await second;
    expect(response.status).toBe(200);
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
    expect(refreshes(world)).toBe(1);
  });
});

it('A response that made no refresh has no Server-Timing, whatever the upstream sends', async () => {
  await using world = startWorld();
  const headers = { 'server-timing': 'refresh' };
  world.upstream.on('GET /v1/music/public/1', () => Response.json({}, { headers }));
  for (const path of ['/api/upstream/v1/music/public/1', '/api/auth/session', '/api/health']) {
    expect(timing(await world.request(path))).toBeNull();
  }
  world.upstream.on(LOGOUT, reply(204));
  expect(timing(await signOut(world, SIGNED_IN))).toBeNull();
});
