import { expect, it } from 'bun:test';
import { send } from '../../support/long-calls.ts';
import { GENERATE, ROUTES, type RouteCase, scriptRoutes } from '../../support/routes.ts';
import { accept, LOGOUT, pair, REFRESH, reply, TOKEN } from '../../support/session-calls.ts';
import { REFRESH_ONLY, SIGNED_IN, startWorld, type World } from '../../support/world.ts';

const CLIENT = '203.0.113.7';
const FORGED = '198.51.100.9';
/** The tests are the proxy. */
const BEHIND_PROXY = { FORWARD_CLIENT_ADDRESS: 'true', TRUSTED_PROXIES: '127.0.0.1' };
/** What such a client and the proxy in front have written. */
const PROXIED = {
  'x-real-ip': FORGED,
  'x-client-ip': FORGED,
  'true-client-ip': FORGED,
  'cf-connecting-ip': FORGED,
  ...{ forwarded: `for=${FORGED}`, 'x-forwarded': `for=${FORGED}`, 'forwarded-for': FORGED },
  'x-forwarded-for': `${FORGED}, ${CLIENT}`,
};

const EXPIRED = 'GET /v1/expired';
const EXPIRED_PATH = '/api/upstream/v1/expired';
const CALLS: readonly Pick<RouteCase, 'path' | 'options' | 'calls'>[] = [
  ...ROUTES,
  { path: EXPIRED_PATH, options: { cookie: SIGNED_IN }, calls: [EXPIRED, REFRESH, EXPIRED] },
  {
    path: '/api/auth/logout',
    options: { method: 'POST', cookie: 'svc_music_refresh=other' },
    calls: [REFRESH, LOGOUT],
  },
];

/** Each call that was received, with all its headers that name an address. */
function received({ upstream }: World): [call: string, headers: Record<string, string>][] {
  return upstream.received.map(({ method, target, headers }) => {
    const naming = [...headers].filter(([name, value]) => /for|ip$/.test(name) || value.includes(FORGED));
    return [`${method} ${target}`, Object.fromEntries(naming)];
  });
}

function naming(address: string) {
  return { forwarded: `for=${address}`, 'x-forwarded-for': address };
}

// Whose address it is: unit/client-address.test.ts.
it.each([
  ['is the one that the trusted proxy names', BEHIND_PROXY, CLIENT],
  ['is the peer, when no proxy is trusted', { FORWARD_CLIENT_ADDRESS: 'true' }, '127.0.0.1'],
  ['is sent nowhere by default', { TRUSTED_PROXIES: '127.0.0.1' }, null],
])('the address that every call to the upstream names %s', async (_, environment, address) => {
  await using world = startWorld({ SIGN_OUT_REVOKES: 'true', ...environment });
  scriptRoutes(world);
  world.upstream.on(EXPIRED, accept('access-2')).on(REFRESH, reply(200, pair(2)));
  for (const { path, options, calls } of CALLS) {
    expect((await world.request(path, { ...options, headers: PROXIED })).status).toBe(200);
    // The identity provider gets none: the user has been there in person.
    const named = (call: string) => (address === null || call === TOKEN ? {} : naming(address));
    expect(received(world)).toEqual(calls.map((call) => [call, named(call)]));
    world.upstream.received.length = 0;
  }
});

it('the address is named also when the client has disconnected before the call', async () => {
  await using world = startWorld({ FORWARD_CLIENT_ADDRESS: 'true' });
  const refreshed = Promise.withResolvers<Response>();
  world.upstream.on(REFRESH, () => refreshed.promise).on('POST /v1/music', reply(200));
  const client = new AbortController();
  const gone = send(world, GENERATE, { cookie: REFRESH_ONLY, signal: client.signal });
  await world.upstream.arrived(REFRESH);
  client.abort();
  await expect(gone).rejects.toThrow();
  // The gateway notices it before it serves another request.
  await world.roundTrip();
  refreshed.resolve(Response.json(pair(2)));
  await world.upstream.arrived('POST /v1/music');
  expect(received(world).at(-1)).toEqual(['POST /v1/music', naming('127.0.0.1')]);
});
