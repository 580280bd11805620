import { afterAll, beforeAll, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import type tls from 'node:tls';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { describeWith, LINUX, program } from '../../support/requirements.ts';
import { connect, ProxyClient } from './proxy-client.ts';
import { prepareHaproxyOfOne, startTlsProxy, type TlsProxy } from './tls-proxies.ts';

const CLIENT = '127.0.0.2';
const ADMIN = new URL('../../../deploy/two-instances/admin.sh', import.meta.url).pathname;

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

  async listen(port: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.listen(port, '127.0.0.1', resolve);
    await promise;
  }

  async refuse(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
  }

  /** Resolves to the request for this path. */
  arrived(path: string): Promise<http.IncomingMessage> {
    return eventually(() => this.received.find(({ url }) => url === path), `${path} to arrive`);
  }
}

describeWith([program('haproxy'), LINUX], 'HAProxy, as configured in deploy,', () => {
  let gateway: FailingGateway;
  let port: number;
  let proxy: TlsProxy;

  beforeAll(async () => {
    gateway = new FailingGateway();
    port = await freePorts(1);
    await gateway.listen(port);
    proxy = await startTlsProxy(prepareHaproxyOfOne, port);
  });

  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await gateway.refuse();
  });

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
      const status = send('POST', path).catch(String);
      (await gateway.arrived(path)).socket.resetAndDestroy();
      expect(await status).toBe(502);
      expect(gateway.received.filter(({ url }) => url === path)).toHaveLength(1);
    },
  );

  it.each(['GET', 'POST'])('ends a %s whose client has gone', async (method) => {
    const path = `/left/${method}`;
    const client = connect(proxy, CLIENT, 'http/1.1');
    responseOn(client, method, path).catch(() => {});
    const { socket } = await gateway.arrived(path);
    client.destroy();
    await eventually(() => socket.destroyed, 'the connection to the gateway to be closed');
  });

  it('serves everybody when the only gateway refuses connections for a moment', async () => {
    // At its start HAProxy takes a gateway out of service after one failed check, and not after three.
    await eventually(() => gateway.checks > 4, 'HAProxy to trust the gateway');
    await gateway.refuse();
    using client = new ProxyClient(proxy, CLIENT);
    const requests = ['GET', 'POST', 'GET', 'POST'].map((method) => client.request(method, '/served'));
    // HAProxy tries again for three seconds. A request that arrives later than this is served as well.
    await Bun.sleep(500);
    await gateway.listen(port);
    expect((await Promise.all(requests)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });
});

it('deploy/two-instances/admin.sh sends its command, and runs nothing of the folder that it is called in', async () => {
  const folder = await mkdtemp(`${tmpdir()}/admin-`);
  const received = Promise.withResolvers<string>();
  const unix = `${folder}/admin.sock`;
  using _ = Bun.listen({
    unix,
    socket: {
      data(socket, data) {
        received.resolve(data.toString());
        socket.end('done');
      },
    },
  });
  await Bun.write(`${folder}/bunfig.toml`, 'preload = ["./foreign.ts"]');
  await Bun.write(`${folder}/foreign.ts`, "await Bun.write(import.meta.dir + '/has-run', '');");
  const env = { ...process.env, ADMIN_SOCKET: unix };
  const admin = Bun.spawn(['sh', ADMIN, 'show info'], { cwd: folder, env, stdout: 'pipe' });
  expect(await received.promise).toBe('show info\n');
  expect(await admin.stdout.text()).toBe('done');
  expect(await Bun.file(`${folder}/has-run`).exists()).toBe(false);
  await rm(folder, { recursive: true });
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
