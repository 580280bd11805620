import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { once } from 'node:events';
import { connect, ProxyClient } from '../support/proxy-client.ts';
import { releasedBody } from '../support/released-body.ts';
import { describeWith, LINUX, program } from '../support/requirements.ts';
import { CLIENT_ADDRESS_HEADER, startTlsProxy, TLS_PROXIES, type TlsProxy } from '../support/tls-proxies.ts';
import { ACCESS_ONLY, ORIGIN, startWorld, type World } from '../support/world.ts';

/** What one client may have in flight, in both configurations. */
const MOST_IN_FLIGHT = 100;
const PIECE = new Uint8Array(65_536);
const PIECES = 640;

describe.each([...TLS_PROXIES])('$program, as configured in deploy,', ({ program: name, prepare }) => {
  // On Linux all of 127.0.0.0/8 is this machine.
  const requirements = [program(name), program('openssl'), LINUX];

  describeWith(requirements, 'limits what a client can do to a gateway:', () => {
    let world: World;
    let proxy: TlsProxy;

    beforeAll(async () => {
      world = startWorld({ NODE_ENV: 'production' });
      proxy = await startTlsProxy(prepare, world.port);
    }, 60_000);

    afterAll(async () => {
      await proxy[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    });

    /** Repeats a request, fifty at once, until one gets 429; gives that response, and how many had another status. */
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

    it('refuses a method that it does not know, and keeps the gateway in service', async () => {
      using client = new ProxyClient(proxy, '127.0.0.2');
      for (let attempt = 0; attempt < 5; attempt++) {
        const { status, headers } = await client.request('FOO', '/api/health');
        expect(status).toBe(405);
        expect(headers.allow).toBe('GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS');
        expect((await client.request('GET', '/api/health')).status).toBe(200);
      }
    });

    it('refuses one address that asks too often, in a way that a page can read, and serves another', async () => {
      using hasty = new ProxyClient(proxy, '127.0.0.3');
      using other = new ProxyClient(proxy, '127.0.0.4');
      const { refused, passed } = await untilRefused(hasty, 'GET', '/api/health');
      expect(new Set(passed)).toEqual(new Set([200]));
      expect(passed.length).toBeGreaterThanOrEqual(500);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      expect(refused.headers['access-control-allow-origin']).toBe(ORIGIN);
      expect((await other.request('GET', '/api/health')).status).toBe(200);
    });

    it('limits sign-ins and sign-outs apart from the rest, however their path is written', async () => {
      using client = new ProxyClient(proxy, '127.0.0.5');
      using other = new ProxyClient(proxy, '127.0.0.6');
      const { passed } = await untilRefused(client, 'POST', '/api/auth/logout');
      expect(new Set(passed)).toEqual(new Set([200]));
      expect(passed.length).toBeGreaterThanOrEqual(30);
      for (const path of [
        '/api/auth/idp',
        '/api/x/../auth/logout',
        '/api/auth/log%6fut',
        '/api/auth\\logout',
      ]) {
        expect([404, 429]).toContain((await client.request('POST', path)).status);
      }
      expect((await client.request('OPTIONS', '/api/auth/logout')).status).toBe(204);
      expect((await client.request('GET', '/api/auth/session')).status).toBe(200);
      expect((await other.request('POST', '/api/auth/logout')).status).toBe(200);
    });

    it('counts the requests of one address that are in flight on all its connections', async () => {
      using busy = new ProxyClient(proxy, '127.0.0.7', { connections: 2 });
      using other = new ProxyClient(proxy, '127.0.0.8');
      const released = Promise.withResolvers<void>();
      world.upstream.on('GET /v1/me', () => released.promise.then(() => new Response()));
      const check = () => busy.request('GET', '/api/auth/session', { cookie: ACCESS_ONLY });
      const checks = Array.from({ length: MOST_IN_FLIGHT }, check);
      await world.upstream.arrived('GET /v1/me', MOST_IN_FLIGHT);
      expect((await check()).status).toBe(429);
      expect((await other.request('GET', '/api/health')).status).toBe(200);
      released.resolve();
      const statuses = (await Promise.all(checks)).map(({ status }) => status);
      expect(statuses).toEqual(Array(MOST_IN_FLIGHT).fill(200));
    });

    it('ends a request whose body stands still, and the gateway sees nothing of it', async () => {
      const head = `POST /api/auth/logout HTTP/1.1\r\nHost: test\r\nOrigin: ${ORIGIN}\r\nContent-Length: 100\r\n`;
      const client = connect(proxy, '127.0.0.9', 'http/1.1');
      const closed = Promise.withResolvers<void>();
      // nginx resets the connection.
      client
        .on('error', () => {})
        .on('close', closed.resolve)
        .resume();
      client.write(`${head}X-Request-Id: slow-body\r\n\r\n{`);
      await closed.promise;
      await world.roundTrip();
      expect(world.lines.filter(({ requestId }) => requestId === 'slow-body')).toEqual([]);
    });

    it('passes a proxied body on while the rest is still to come', async () => {
      const body = releasedBody();
      world.upstream.on('GET /v1/arriving', () => new Response(body.stream));
      body.release(PIECE.subarray(0, 10_000));
      const tls = { ca: proxy.certificate };
      const headers = { origin: ORIGIN, cookie: ACCESS_ONLY };
      const response = await fetch(`https://127.0.0.1:${proxy.port}/api/upstream/v1/arriving`, {
        headers,
        tls,
      });
      const first = await response.body?.getReader().read();
      expect(first?.value?.byteLength).toBeGreaterThan(0);
      body.end();
    });

    // HAProxy takes the client's address from the connection, and keeps no file for slow readers.
    if (name !== 'nginx') return;

    it('takes an IPv6 network of 64 bits for one client', async () => {
      using client = new ProxyClient(proxy, '127.0.0.10');
      const from = (address: string) => ({ [CLIENT_ADDRESS_HEADER]: address });
      await untilRefused(client, 'POST', '/api/auth/logout', from('2001:db8:1:2::5'));
      const status = async (address: string) =>
        (await client.request('POST', '/api/auth/logout', from(address))).status;
      expect(await status('2001:db8:1:2:ffff::9')).toBe(429);
      expect(await status('2001:db8:1:3::5')).toBe(200);
    });

    it('takes a whole track from the gateway for a slow reader', async () => {
      let pieces = 0;
      const track = () =>
        new ReadableStream<Uint8Array>({
          pull(controller) {
            if (++pieces > PIECES) controller.close();
            else controller.enqueue(PIECE);
          },
        });
      world.upstream.on('GET /v1/track', () => new Response(track()));
      const client = connect(proxy, '127.0.0.11', 'http/1.1');
      const head = `GET /api/upstream/v1/track HTTP/1.1\r\nHost: test\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n`;
      client.write(`${head}X-Request-Id: slow-reader\r\n\r\n`);
      const [first] = await once(client, 'data');
      client.pause();
      expect(String(first)).toStartWith('HTTP/1.1 200');
      const line = await world.line({ requestId: 'slow-reader' });
      expect(line).toMatchObject({ status: 200, bytes: PIECES * PIECE.byteLength });
      expect(client.bytesRead).toBeLessThan(PIECE.byteLength * 100);
      client.destroy();
    });
  });
});
