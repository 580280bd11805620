import { afterAll, beforeAll, expect, it } from 'bun:test';
import { once } from 'node:events';
import http from 'node:http';
import { requestOf } from '../../load/raw-client.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { describeWith, LINUX, program } from '../../support/requirements.ts';
import { readStatistics } from '../virtual-machine.ts';
import { prepareHaproxy, startTlsProxy, type TlsProxy } from './tls-proxies.ts';

const CLIENT = '127.0.0.2';
const EMPTY = { 'content-length': 0 };

describeWith([program('haproxy'), LINUX], 'HAProxy, as configured in deploy,', () => {
  const received: http.IncomingMessage[] = [];
  const to = (path: string) => received.filter(({ url }) => url === path);
  /** In the place of a gateway; it responds to nothing but health checks and `/served`. */
  const gateway = http.createServer((request, response) => {
    received.push(request);
    if (request.url === '/api/health' || request.url === '/served') response.end();
  });
  const stack = new AsyncDisposableStack();
  let port: number;
  let proxy: TlsProxy;

  const listen = () => once(gateway.listen(port, '127.0.0.1'), 'listening');
  const refuse = async () => {
    const closed = once(gateway, 'close');
    gateway.close();
    gateway.closeAllConnections();
    await closed;
  };
  const arrived = (path: string) => eventually(() => to(path)[0], `${path} to arrive`);

  beforeAll(async () => {
    port = await freePorts(1);
    await listen();
    stack.defer(refuse);
    // The other server would be the same gateway.
    const one = { 'server b "${GATEWAY_B}" weight 100 check inter 1s': '' };
    proxy = stack.use(await startTlsProxy(prepareHaproxy, port, one));
  });

  afterAll(() => stack.disposeAsync());

  it('responds with 502 to a POST whose gateway ends, because browsers repeat what has no response', async () => {
    // Each on a connection that has carried a request before.
    using http2 = proxy.openClient(CLIENT);
    await http2.request('GET', '/served');
    const response = http2.request('POST', '/lost/http2');
    (await arrived('/lost/http2')).socket.resetAndDestroy();
    expect((await response).status).toBe(502);
    const http1 = proxy.send(CLIENT, requestOf('GET /served'));
    await once(http1, 'data');
    http1.write(requestOf('POST /lost/http1', EMPTY));
    (await arrived('/lost/http1')).socket.resetAndDestroy();
    const [head] = await Promise.race([once(http1, 'data'), once(http1, 'close')]);
    http1.destroy();
    expect(String(head)).toStartWith('HTTP/1.1 502 ');
    expect([to('/lost/http2'), to('/lost/http1')]).toEqual([[expect.anything()], [expect.anything()]]);
  });

  it.each(['GET', 'POST'])('ends a %s whose client has gone', async (method) => {
    const path = `/left/${method}`;
    const client = proxy.send(CLIENT, requestOf(`${method} ${path}`, EMPTY));
    const { socket } = await arrived(path);
    client.destroy();
    await eventually(() => socket.destroyed, 'the connection to the gateway to be closed');
  });

  it('serves everybody when the only gateway refuses connections for a moment', async () => {
    // At its start HAProxy takes a gateway out of service after one failed check, and not after three.
    await eventually(() => to('/api/health').length > 5, 'HAProxy to trust the gateway');
    await refuse();
    using client = proxy.openClient(CLIENT);
    const requests = ['GET', 'POST', 'GET', 'POST'].map((method) => client.request(method, '/served'));
    const areRetried = async () => Number((await readStatistics(proxy.statistics))[0]?.['wretr']) >= 4;
    await eventually(areRetried, 'HAProxy to try each again');
    await listen();
    expect((await Promise.all(requests)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  it('takes no command of a web page that posts to the statistics', async () => {
    const body = new URLSearchParams({ s: 'a', b: 'gateways', action: 'maint' });
    const response = await fetch(proxy.statistics, { method: 'POST', body, redirect: 'manual' });
    expect(response.headers.get('location')).toEndWith('st=DENY');
  });
});
