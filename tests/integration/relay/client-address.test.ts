import { expect, it } from 'bun:test';
import { ROUTES, scriptRoutes } from '../../support/routes.ts';
import { TOKEN } from '../../support/session-calls.ts';
import { startWorld, type World } from '../../support/world.ts';

const CLIENT = '203.0.113.7';
const FORGED = '198.51.100.9';
/** The tests are the proxy. */
const BEHIND_PROXY = { FORWARD_CLIENT_ADDRESS: 'true', TRUSTED_PROXIES: '127.0.0.1' };
/** What such a client and the proxy in front have written. */
const PROXIED = {
  ...{ 'x-real-ip': FORGED, 'x-client-ip': FORGED, 'true-client-ip': FORGED, 'cf-connecting-ip': FORGED },
  ...{ forwarded: `for=${FORGED}`, 'x-forwarded': `for=${FORGED}`, 'forwarded-for': FORGED },
  'x-forwarded-for': `${FORGED}, ${CLIENT}`,
};

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
])('the address that every route sends to the upstream %s', async (_, environment, address) => {
  await using world = startWorld(environment);
  scriptRoutes(world);
  for (const { path, options, calls } of ROUTES) {
    expect((await world.request(path, { ...options, headers: PROXIED })).status).toBe(200);
    // The identity provider gets none: the user has been there in person.
    const named = (call: string) => (address === null || call === TOKEN ? {} : naming(address));
    expect(received(world)).toEqual(calls.map((call) => [call, named(call)]));
    world.upstream.received.length = 0;
  }
});
