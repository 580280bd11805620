import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { BUFFERED, GENERATE, proxied, type RouteCase } from '../../support/routes.ts';
import { accept, pair, REFRESH, refreshes, reply, silence } from '../../support/session-calls.ts';
import {
  ACCESS_ONLY,
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
const ROUTES: readonly RouteCase[] = [...BUFFERED, GENERATE, proxied('GET'), PATCH];

/** An upstream's 401 with this challenge. */
const refuse = (header: string) => () =>
  Response.json({ error: { message: 'no' } }, { status: 401, headers: { 'www-authenticate': header } });

const callOf = ({ calls }: RouteCase) => calls.join();
const CALL = callOf(PATCH);

function send(world: World, { path, options }: RouteCase, cookie = SIGNED_IN): Promise<Response> {
  return world.request(path, { ...options, cookie, headers: { 'idempotency-key': 'key-1' } });
}

type Respond = () => Response | Promise<Response>;

interface Case {
  readonly environment?: Environment;
  readonly cookie?: string;
  /** What the upstream makes of the first call, of the refresh and of the second call. */
  readonly first?: Respond;
  readonly refresh?: Respond;
  readonly second?: Respond;
}

const KEEP = { environment: { REFRESH_OUTAGE: 'keep' } };
const INVALID = 'Bearer error="invalid_token"';
const NO_TOKEN = `${ACCESS_ONLY}; svc_music_refresh=a%0d%0ab`;
const NOTHING = { cookies: {}, timing: null, challenge: null, proxyStatus: null };
const STORED = { cookies: NEW_TOKENS, timing: 'refresh', calls: [CALL, REFRESH, CALL], refresh: 'renewed' };
const REFUSED = { ...NOTHING, status: 401, calls: [CALL, REFRESH] };
const ENDED = {
  ...REFUSED,
  text: JSON.stringify({ error: { message: messages.en.sessionEnded } }),
  cookies: { svc_music_access: '', svc_music_refresh: '' },
  refresh: 'rejected',
  tokenProblem: undefined,
  level: 'info',
};
const KEPT = { ...REFUSED, text: '{"error":{"message":"expired"}}', refresh: 'unreachable' };
const AWAY = { ...KEPT, proxyStatus: 'music-gateway; error=destination_unavailable', level: 'warn' };
const LATE = { ...KEPT, proxyStatus: 'music-gateway; error=http_response_timeout' };

describe('after a 401', () => {
  it.each([
    [GENERATE, 'Origin, Cookie', 'Server-Timing'],
    [PATCH, 'Origin, Cookie, Accept', 'x-ratelimit-used'],
  ])('a call is repeated as it was, once the new pair is stored: $name', async (route, vary, exposed) => {
    await using world = startWorld();
    const call = callOf(route);
    const given = { 'server-timing': 'db;dur=12', 'cache-control': 'public', 'x-ratelimit-used': '3' };
    const works = () => Response.json({ it: 'works' }, { headers: { ...given, vary: 'Accept' } });
    world.upstream.on(call, accept('access-2', works)).on(REFRESH, reply(200, RENEWED));
    const response = await send(world, route);
    const { status, headers } = response;
    expect([status, await response.text()]).toEqual([200, '{"it":"works"}']);
    expect([storedTokens(response), headers.get('server-timing')]).toEqual([NEW_TOKENS, 'refresh']);
    expect(headers.getSetCookie()[0]).toContain('; Max-Age=120;');
    // A cache that kept it would give its cookies to others.
    expect([headers.get('cache-control'), headers.get('vary')]).toEqual(['no-store', vary]);
    expect(headers.get('access-control-expose-headers')).toContain(exposed);
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

  it('all routes share one refresh, and get the new cookies', async () => {
    await using world = startWorld();
    const refresh = Promise.withResolvers<Response>();
    for (const route of ROUTES) world.upstream.on(callOf(route), accept('access-2'));
    world.upstream.on(REFRESH, () => refresh.promise);
    const requests = ROUTES.map((route) => send(world, route));
    for (const route of ROUTES) await world.upstream.arrived(callOf(route));
    await world.roundTrip();
    refresh.resolve(Response.json(RENEWED));
    for (const response of await Promise.all(requests)) {
      const timing = response.headers.get('server-timing');
      expect([response.status, storedTokens(response), timing]).toEqual([200, NEW_TOKENS, 'refresh']);
    }
    expect(refreshes(world)).toBe(1);
  });

  // After which statuses none is made: relay/relayed-responses.test.ts.
  it.each<[what: string, change: Case, expected: object]>([
    ['stores the pair although the token is refused again', { second: EXPIRED }, { ...STORED, status: 401 }],
    ['stores the pair although it gets no response', { second: silence }, { ...STORED, status: 502 }],
    ...['expired_token', 'token_expired', 'invalid_request', 'unauthorized'].map(
      (error): [string, Case, object] => [
        `follows the error ${error}`,
        { first: refuse(`Bearer error="${error}"`) },
        STORED,
      ],
    ),
    ['relays a challenge after it', { second: refuse(STEP_UP) }, { ...STORED, challenge: STEP_UP }],
    [
      'comes first without an access token',
      { cookie: REFRESH_ONLY, second: EXPIRED },
      { ...STORED, status: 401, calls: [REFRESH, CALL] },
    ],
    ['is refused', { ...KEEP, refresh: reply(401) }, ENDED],
    ['redirects', { ...KEEP, refresh: () => Response.redirect('/v1/elsewhere', 307) }, ENDED],
    [
      'gives half a pair',
      { ...KEEP, refresh: reply(200, { access_token: 'access-2' }) },
      { ...ENDED, level: 'warn', tokenProblem: 'no refresh_token' },
    ],
    ['finds an outage', { refresh: reply(503, 'oops') }, { ...ENDED, level: 'warn' }],
    ['finds an outage, and keeps the session', { ...KEEP, refresh: reply(500) }, AWAY],
    ['is refused with 499, which is no outage', { ...KEEP, refresh: reply(499) }, ENDED],
    ['comes too often, and keeps the session', { ...KEEP, refresh: reply(429) }, AWAY],
    ['gets no response, and keeps the session', { refresh: silence }, LATE],
    [
      'is not made with one that is no token',
      { cookie: NO_TOKEN, first: refuse(INVALID) },
      { ...NOTHING, status: 401, calls: [CALL], refresh: undefined },
    ],
  ])('a refresh that %s', async (_, { environment, cookie, ...responses }, expected) => {
    const { first = EXPIRED, refresh = reply(200, RENEWED), second = reply(200, {}) } = responses;
    await using world = startWorld({ TIMEOUT_STREAM_MS: '1000', TIMEOUT_SIGN_IN_MS: '1000', ...environment });
    world.upstream
      .on(REFRESH, refresh)
      .on(CALL, ({ headers }) => (headers.get('authorization') === 'Bearer access-2' ? second : first)());
    const response = await send(world, PATCH, cookie);
    const { status, headers } = response;
    const line = await world.line({ status });
    expect({
      status,
      text: await response.text(),
      cookies: storedTokens(response),
      timing: headers.get('server-timing'),
      challenge: headers.get('www-authenticate'),
      proxyStatus: headers.get('proxy-status'),
      calls: world.upstream.calls,
      refresh: line['refresh'],
      tokenProblem: line['tokenProblem'],
      level: line['level'],
    }).toMatchObject(expected);
  });
});

it.each([200, 401])(
  'The body of a 401 that never begins does not hold up the refresh, whose %i frees its connection',
  async (status) => {
    const closed = Promise.withResolvers<unknown>();
    const pair = JSON.stringify(RENEWED);
    const head = (given: number, rest: string) => `HTTP/1.1 ${given} Text\r\nConnection: close\r\n${rest}`;
    await using upstream = await startRawUpstream((socket, request) => {
      if (request.startsWith(REFRESH))
        socket.end(head(status, `Content-Length: ${pair.length}\r\n\r\n${pair}`));
      else if (request.includes('Bearer access-2')) socket.end(head(200, 'Content-Length: 0\r\n\r\n'));
      else {
        socket.on('close', closed.resolve);
        socket.write(head(401, 'Transfer-Encoding: chunked\r\n\r\n'));
      }
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await send(world, proxied('GET'));
    const stored = status === 200 ? NEW_TOKENS : ENDED.cookies;
    expect([response.status, storedTokens(response)]).toEqual([status, stored]);
    await closed.promise;
  },
);
