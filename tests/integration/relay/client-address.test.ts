import { describe, expect, it } from 'bun:test';
import { RawConnection } from '../../support/raw-http.ts';
import { PROXIED_PATH, PUBLIC, ROUTES, scriptRoutes } from '../../support/routes.ts';
import { accept, cookies, LOGOUT, ME, pair, REFRESH, reply, TOKEN } from '../../support/session-calls.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { ORIGIN, REFRESH_ONLY, SIGNED_IN, startWorld, type World } from '../../support/world.ts';

const CLIENT = '203.0.113.7';
const FORGED = '198.51.100.9';
/** The tests are the proxy. */
const BEHIND_PROXY = { FORWARD_CLIENT_ADDRESS: 'true', TRUSTED_PROXIES: '127.0.0.1' };
const FORGERIES = {
  forwarded: `for=${FORGED}`,
  'x-real-ip': FORGED,
  'x-client-ip': FORGED,
  'x-cluster-client-ip': FORGED,
  'true-client-ip': FORGED,
  'cf-connecting-ip': FORGED,
  'fastly-client-ip': FORGED,
  'x-forwarded': `for=${FORGED}`,
  'forwarded-for': FORGED,
};
/** What such a client and the proxy in front have written. */
const PROXIED = { ...FORGERIES, 'x-forwarded-for': `${FORGED}, ${CLIENT}` };

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

describe.each(ROUTES)('the call of $name', ({ path, options, calls }) => {
  const headers = { ...PROXIED };

  it('names the client to the upstream, but not to the identity provider', async () => {
    await using world = startWorld(BEHIND_PROXY);
    scriptRoutes(world);
    expect((await world.request(path, { ...options, headers })).status).toBe(200);
    expect(received(world)).toEqual(calls.map((call) => [call, call === TOKEN ? {} : naming(CLIENT)]));
  });

  it('names the peer, when no proxy is trusted', async () => {
    await using world = startWorld({ FORWARD_CLIENT_ADDRESS: 'true' });
    scriptRoutes(world);
    expect((await world.request(path, { ...options, headers })).status).toBe(200);
    expect(received(world)).toEqual(calls.map((call) => [call, call === TOKEN ? {} : naming('127.0.0.1')]));
  });

  it('names nobody by default', async () => {
    await using world = startWorld({ TRUSTED_PROXIES: '127.0.0.1' });
    scriptRoutes(world);
    expect((await world.request(path, { ...options, headers })).status).toBe(200);
    expect(received(world)).toEqual(calls.map((call) => [call, {}]));
  });
});

describe('the address of the client', () => {
  const world = sharedWorld({ ...BEHIND_PROXY, SIGN_OUT_REVOKES: 'true' });
  world.upstream
    .on(ME, accept('access-2'))
    .on(REFRESH, reply(200, pair(2)))
    .on(LOGOUT, ({ headers }) => reply(headers.get('authorization') === 'Bearer access-2' ? 200 : 401, {})())
    .on('GET /v1/library', () => new Response())
    .on('GET /v1/music/public/abc', () => new Response());

  it('is named in a refresh, and in the calls before and after it', async () => {
    const response = await world.request('/api/auth/session', { cookie: SIGNED_IN, headers: PROXIED });
    expect(response.status).toBe(200);
    expect(received(world)).toEqual([ME, REFRESH, ME].map((call) => [call, naming(CLIENT)]));
  });

  it('is that of each request, also when they share a refresh', async () => {
    const addresses = [1, 2, 3].map((last) => `203.0.113.${last}`);
    const checks = addresses.map((address) =>
      world.request('/api/auth/session', {
        cookie: 'svc_music_access=access-1; svc_music_refresh=refresh-shared',
        headers: { 'x-forwarded-for': address },
      }),
    );
    for (const response of await Promise.all(checks)) expect(response.status).toBe(200);
    const named = (call: string) =>
      received(world)
        .filter(([name]) => name === call)
        .map(([, headers]) => headers['x-forwarded-for']);
    expect(addresses).toContain(named(REFRESH).join());
    expect(named(ME).toSorted()).toEqual([...addresses, ...addresses].toSorted());
  });

  it('is named in every call of a sign-out that refreshes', async () => {
    const response = await world.request('/api/auth/logout', {
      method: 'POST',
      cookie: cookies(7),
      headers: PROXIED,
    });
    expect(response.status).toBe(200);
    expect(received(world)).toEqual([LOGOUT, REFRESH, LOGOUT].map((call) => [call, naming(CLIENT)]));
  });

  it.each([PROXIED_PATH, PUBLIC.path])(
    'is what the proxy has written, whatever Connection names: %s',
    async (path) => {
      const lines = ['Connection: X-Forwarded-For, Forwarded', `X-Forwarded-For: ${FORGED}`];
      const call = { lines: [...lines, `X-Real-IP: ${FORGED}`, `x-forwarded-for: ${CLIENT}`] };
      expect((await rawCall(world, `GET ${path}`, call)).status).toBe(200);
      expect(received(world).map(([, headers]) => headers)).toEqual([naming(CLIENT)]);
    },
  );

  it('has brackets and quotation marks in Forwarded when it is an IPv6 address', async () => {
    const headers = { 'x-forwarded-for': `${FORGED}, [2001:DB8::0:7]:443` };
    expect((await world.request(PROXIED_PATH, { cookie: SIGNED_IN, headers })).status).toBe(200);
    const expected = { forwarded: 'for="[2001:db8::7]"', 'x-forwarded-for': '2001:db8::7' };
    expect(received(world)).toEqual([['GET /v1/library', expected]]);
  });

  it('is known after the client has disconnected', async () => {
    const refreshing = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => refreshing.promise);
    const client = new RawConnection(world.port);
    const head = `Host: test\r\nOrigin: ${ORIGIN}\r\nCookie: ${REFRESH_ONLY.replace('1', '8')}`;
    const lines = `X-Forwarded-For: ${FORGED}, ${CLIENT}\r\nX-Request-Id: left`;
    await client.send(`POST /api/music/generate HTTP/1.1\r\n${head}\r\n${lines}\r\n`);
    const order = JSON.stringify({ model: 'm', prompt: 'p', music_length_ms: 3000 });
    await client.send(`Content-Type: application/json\r\nContent-Length: ${order.length}\r\n\r\n${order}`);
    await world.upstream.arrived(REFRESH);
    client.reset();
    await client.closed;
    await world.roundTrip();
    world.upstream.on('POST /v1/music', () => new Response('track'));
    refreshing.resolve(Response.json(pair(9)));
    expect(await world.line({ requestId: 'left' })).toMatchObject({ clientGone: 'waiting' });
    const calls = received(world).filter(([call]) => call !== 'GET /v1/round-trip');
    expect(calls).toEqual([REFRESH, 'POST /v1/music'].map((call) => [call, naming(CLIENT)]));
  });
});
