import { expect, it } from 'bun:test';
import { once } from 'node:events';
import { describeBehindProxies, openRequest } from '../../support/behind-proxies.ts';
import { ProxyClient } from '../../support/proxy-client.ts';
import { CLIENT_ADDRESS_HEADER, startTlsProxy } from '../../support/tls-proxies.ts';
import { ACCESS_ONLY, ORIGIN } from '../../support/world.ts';

/** One client may have this many in flight, in both configurations. */
const MAX_IN_FLIGHT = 100;
const PIECE = new Uint8Array(65_536);
const PIECES = 640;

/** Repeats a request, fifty at once, until one gets 429; returns that response, and the other statuses. */
async function untilRefused(client: ProxyClient, method: string, path: string, headers = {}) {
  const passed: number[] = [];
  while (passed.length < 5000) {
    const requests = Array.from({ length: 50 }, () => client.request(method, path, headers));
    const batch = await Promise.all(requests);
    passed.push(...batch.map(({ status }) => status).filter((status) => status !== 429));
    const refused = batch.find(({ status }) => status === 429);
    if (refused) return { refused, passed };
  }
  throw new Error(`${passed.length} requests and none was refused`);
}

describeBehindProxies('limits what a client can do to a gateway:', (behind, { program, prepareHasty }) => {
  const clientAt = (address: string, options = {}) => new ProxyClient(behind().proxy, address, options);

  it('refuses a method that it does not know, and keeps the gateway in service', async () => {
    using client = clientAt('127.0.0.2');
    for (let attempt = 0; attempt < 5; attempt++) {
      const { status, headers } = await client.request('FOO', '/api/health');
      expect(status).toBe(405);
      expect(headers.allow).toBe('GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS');
      expect((await client.request('GET', '/api/health')).status).toBe(200);
    }
  });

  it('refuses one address that asks too often, in a way that a page can read, and serves another', async () => {
    using hasty = clientAt('127.0.0.3');
    using other = clientAt('127.0.0.4');
    const { refused, passed } = await untilRefused(hasty, 'GET', '/api/health');
    expect(new Set(passed)).toEqual(new Set([200]));
    expect(passed.length).toBeGreaterThanOrEqual(500);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(refused.headers['access-control-allow-origin']).toBe(ORIGIN);
    expect((await other.request('GET', '/api/health')).status).toBe(200);
  });

  it('limits sign-ins and sign-outs apart from the rest, however their path is written', async () => {
    using client = clientAt('127.0.0.5');
    using other = clientAt('127.0.0.6');
    const { passed } = await untilRefused(client, 'POST', '/api/auth/logout');
    expect(new Set(passed)).toEqual(new Set([200]));
    expect(passed.length).toBeGreaterThanOrEqual(30);
    const spellings = ['/api/auth/idp', '/api/x/../auth/logout', '/api/auth/log%6fut', '/api/auth\\logout'];
    for (const path of spellings) {
      expect([404, 429]).toContain((await client.request('POST', path)).status);
    }
    expect((await client.request('OPTIONS', '/api/auth/logout')).status).toBe(204);
    expect((await client.request('GET', '/api/auth/session')).status).toBe(200);
    expect((await other.request('POST', '/api/auth/logout')).status).toBe(200);
  });

  it('counts the requests of one address that are in flight on all its connections', async () => {
    using busy = clientAt('127.0.0.7', { connections: 2 });
    using other = clientAt('127.0.0.8');
    const { upstream } = behind().world;
    const released = Promise.withResolvers<void>();
    upstream.on('GET /v1/me', () => released.promise.then(() => new Response()));
    const check = () => busy.request('GET', '/api/auth/session', { cookie: ACCESS_ONLY });
    const checks = Array.from({ length: MAX_IN_FLIGHT }, check);
    await upstream.arrived('GET /v1/me', MAX_IN_FLIGHT);
    expect((await check()).status).toBe(429);
    expect((await other.request('GET', '/api/health')).status).toBe(200);
    released.resolve();
    const statuses = (await Promise.all(checks)).map(({ status }) => status);
    expect(statuses).toEqual(Array(MAX_IN_FLIGHT).fill(200));
  });

  it('ends a request whose body stalls, and the gateway sees nothing of it', async () => {
    const { world } = behind();
    await using proxy = await startTlsProxy(prepareHasty, world.port);
    const headers = 'X-Request-Id: slow-body\r\nContent-Length: 100';
    const client = openRequest(proxy, '127.0.0.9', 'POST /api/auth/logout', headers).resume();
    client.write('{');
    await new Promise((resolve) => client.on('close', resolve));
    await world.roundTrip();
    expect(world.lines.filter(({ requestId }) => requestId === 'slow-body')).toEqual([]);
  });

  // HAProxy takes the client's address from the connection, and keeps no file for slow readers.
  if (program !== 'nginx') return;

  it('takes an IPv6 network of 64 bits for one client', async () => {
    using client = clientAt('127.0.0.10');
    const from = (address: string) => ({ [CLIENT_ADDRESS_HEADER]: address });
    await untilRefused(client, 'POST', '/api/auth/logout', from('2001:db8:1:2::5'));
    const status = async (address: string) =>
      (await client.request('POST', '/api/auth/logout', from(address))).status;
    expect(await status('2001:db8:1:2:ffff::9')).toBe(429);
    expect(await status('2001:db8:1:3::5')).toBe(200);
  });

  it('reads a whole track from the gateway for a slow reader', async () => {
    const { world, proxy } = behind();
    let pieces = 0;
    const pull = (body: ReadableStreamDefaultController) => {
      if (++pieces > PIECES) body.close();
      else body.enqueue(PIECE);
    };
    world.upstream.on('GET /v1/track', () => new Response(new ReadableStream({ pull })));
    const id = 'X-Request-Id: slow-reader';
    const client = openRequest(proxy, '127.0.0.11', 'GET /api/upstream/v1/track', id);
    const [first] = await once(client, 'data');
    client.pause();
    expect(String(first)).toStartWith('HTTP/1.1 200');
    const line = await world.line({ requestId: 'slow-reader' });
    expect(line).toMatchObject({ status: 200, bytes: PIECES * PIECE.byteLength });
    expect(client.bytesRead).toBeLessThan(PIECE.byteLength * 100);
    client.destroy();
  });
});
