import { afterAll, beforeAll, expect, it } from 'bun:test';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type tls from 'node:tls';
import { eventually } from '../../support/eventually.ts';
import { readStatistics } from '../../support/haproxy.ts';
import { connect, ProxyClient } from '../../support/proxy-client.ts';
import { describeWith, LINUX, program, ROOT } from '../../support/requirements.ts';
import {
  prepareHaproxyOfOne,
  prepareHaproxyWithoutRoot,
  startTlsProxy,
  type TlsProxy,
} from '../../support/tls-proxies.ts';

const REQUIREMENTS = [program('haproxy'), program('openssl'), LINUX];
const CLIENT = '127.0.0.2';

/** In the place of a gateway: it can end in the middle of a request, and refuse connections for a while. */
class FailingGateway {
  /** The requests that have arrived, without health checks. */
  readonly received: http.IncomingMessage[] = [];
  /** The health checks of HAProxy, which speaks HTTP/1.0 in them. */
  checks = 0;
  readonly #server = http.createServer((request, response) => {
    if (request.url === '/api/health') {
      if (request.httpVersion === '1.0') this.checks++;
      response.end();
      return;
    }
    this.received.push(request);
    if (request.url === '/served') response.end();
  });

  async listen(port = 0): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.listen(port, '127.0.0.1', resolve);
    await promise;
    const address: AddressInfo = Object(this.#server.address());
    return address.port;
  }

  async refuse(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
  }
}

describeWith(REQUIREMENTS, 'HAProxy, as configured in deploy,', () => {
  let gateway: FailingGateway;
  let port: number;
  let proxy: TlsProxy;

  beforeAll(async () => {
    gateway = new FailingGateway();
    port = await gateway.listen();
    proxy = await startTlsProxy(prepareHaproxyOfOne, port);
    const isAlone = async () => {
      const instances = await readStatistics(`http://127.0.0.1:${proxy.port + 1}/`);
      return instances.map(({ status }) => status === 'UP').join() === 'true,false';
    };
    await eventually(isAlone, 'the gateway to be the only one', 60_000);
  }, 60_000);

  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await gateway.refuse();
  });

  const arrived = (path: string) => gateway.received.filter(({ url }) => url === path);

  /** Sends a request on a connection that has carried one before. Returns its status; rejects without a response. */
  const SEND: Record<string, (method: string, path: string) => Promise<number>> = {
    async 'HTTP/2'(method, path) {
      using client = new ProxyClient(proxy, CLIENT);
      await client.request('GET', '/served');
      return (await client.request(method, path)).status;
    },
    async 'HTTP/1.1'(method, path) {
      const client = connect(proxy, CLIENT, 'http/1.1');
      await responseOn(client, 'GET', '/served');
      const status = await responseOn(client, method, path);
      client.destroy();
      return status;
    },
  };

  it.each(Object.entries(SEND))(
    'responds with 502 by %s to a POST whose gateway ends, because browsers repeat what has no response',
    async (protocol, send) => {
      const path = `/lost/${protocol}`;
      const status = send('POST', path);
      status.catch(() => {});
      await eventually(() => arrived(path).length > 0, 'the request to arrive');
      arrived(path)[0]?.socket.resetAndDestroy();
      expect(await status).toBe(502);
      expect(arrived(path)).toHaveLength(1);
    },
  );

  it.each(['GET', 'POST'])('ends a %s whose client has gone', async (method) => {
    const path = `/left/${method}`;
    const client = connect(proxy, CLIENT, 'http/1.1');
    responseOn(client, method, path).catch(() => {});
    await eventually(() => arrived(path).length > 0, 'the request to arrive');
    client.destroy();
    await eventually(() => arrived(path)[0]?.socket.destroyed, 'the connection to the gateway to be closed');
  });

  it('serves everybody when the only gateway refuses connections for a moment', async () => {
    // At its start HAProxy takes a gateway out of service after one failed check, and not after three.
    await eventually(() => gateway.checks > 4, 'HAProxy to trust the gateway', 20_000);
    await gateway.refuse();
    using client = new ProxyClient(proxy, CLIENT);
    const requests = ['GET', 'POST', 'GET', 'POST'].map((method) => client.request(method, '/served'));
    // HAProxy tries again for three seconds. A request that arrives later than this is served as well.
    await Bun.sleep(500);
    await gateway.listen(port);
    expect((await Promise.all(requests)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });
});

describeWith([...REQUIREMENTS, ROOT], 'HAProxy that gives up the rights of root', () => {
  it.each(['GET', 'POST'])('passes a %s on', async (method) => {
    const gateway = new FailingGateway();
    await using proxy = await startTlsProxy(prepareHaproxyWithoutRoot, await gateway.listen());
    using client = new ProxyClient(proxy, CLIENT);
    expect((await client.request(method, '/served')).status).toBe(200);
    await gateway.refuse();
  });
});

/** Rejects when the connection is closed without a response. */
function responseOn(client: tls.TLSSocket, method: string, path: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  client.once('data', (data) => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString('latin1'))?.[1])));
  client.once('close', () => reject(new Error('closed without a response')));
  client.on('error', () => {});
  const length = method === 'POST' ? 'Content-Length: 0\r\n' : '';
  client.write(`${method} ${path} HTTP/1.1\r\nHost: test\r\n${length}\r\n`);
  return promise;
}
