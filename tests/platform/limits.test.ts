/**
 * Limits of Bun, which only another version of it can change. A test fails when Bun lifts its limit: then delete the
 * test, its row in src/README.md, and what the gateway does instead.
 */

import { describe, expect, it } from 'bun:test';
import type net from 'node:net';
import { RawConnection, rawRequest } from '../support/raw-http.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { ACCESS_ONLY, ORIGIN, startWorld, type World } from '../support/world.ts';

const HEAD = `Host: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n`;
const CLOSE = 'Connection: close\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
/** Larger than what the gateway reads first, so that it is streamed. */
const LONG = 'a'.repeat(64 * 1024);

function call(path: string, lines = CLOSE, method = 'GET', version = 'HTTP/1.1'): string {
  return `${method} /api/upstream/v1/${path} ${version}\r\n${HEAD}${lines}\r\n`;
}

/** A gateway before an upstream that is called with the socket of each connection. */
async function startBefore(respond: (socket: net.Socket, request: string) => void) {
  const upstream = await startRawUpstream(respond);
  const world = startWorld({ UPSTREAM_URL: upstream.url });
  const dispose = async () => {
    await world[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  };
  return { upstream, world, [Symbol.asyncDispose]: dispose };
}

async function open({ port }: World, bytes: string): Promise<RawConnection> {
  const connection = new RawConnection(port);
  await connection.send(bytes);
  return connection;
}

describe('Bun itself refuses', () => {
  it.each([
    ['two lengths', 400, call('x', 'Content-Length: 1\r\nContent-Length: 2\r\n')],
    ['a head of more than 16 KiB', 431, call('x', `X: ${'a'.repeat(20_000)}\r\n`)],
    ['another version of HTTP', 505, call('x', CLOSE, 'GET', 'HTTP/1.2')],
    ['trailers', 400, `${call('x', CLOSE + CHUNKED, 'POST')}2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n`],
    ['the method GETT', 0, call('x', CLOSE, 'GETT')],
    ['the method get', 0, call('x', CLOSE, 'get')],
  ])('%s with a bare %i, or without a response', async (_, expected, bytes) => {
    await using world = startWorld();
    world.upstream.on('POST /v1/x', () => new Response('ok'));
    const { status, headers, body } = await rawRequest(world.port, bytes);
    expect({ status, body, names: [...headers.keys()] }).toEqual({
      status: expected,
      body: '',
      names: expected ? ['connection'] : [],
    });
  });
});

describe('an interim response', () => {
  it('of the upstream does not reach the client', async () => {
    const early = 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n';
    await using started = await startBefore((socket) => socket.end(early + OK));
    const { status, headers, body } = await rawRequest(started.world.port, call('x'));
    expect([status, headers.get('link'), body]).toEqual([200, null, 'ok']);
  });

  it.each([
    ['before the gateway has judged the request', ORIGIN.replace('studio', 'evil'), 403],
    ['although Expect is not forwarded', ORIGIN, 200],
  ])('is sent for an Expect header %s', async (_, origin, status) => {
    await using world = startWorld();
    world.upstream.on('POST /v1/x', ({ headers, body }) => new Response(headers.get('expect') ?? body));
    const bytes = call('x', `${CLOSE}Expect: 100-continue\r\nContent-Length: 2\r\n`, 'POST');
    const response = await rawRequest(world.port, `${bytes.replace(ORIGIN, origin)}hi`);
    expect(response.status).toBe(100);
    expect(response.body).toStartWith(`HTTP/1.1 ${status} `);
    expect(response.body.endsWith('hi')).toBe(status === 200);
  });
});

describe('a streamed response', () => {
  it('has no trailers, and its length is dropped', async () => {
    const lines = `HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\n${CHUNKED}\r\n10000\r\n${LONG}\r\n0\r\nX-Sum: 7\r\n\r\n`;
    await using trailing = await startBefore((socket) => socket.end(lines));
    await using declared = await startBefore((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${LONG.length}\r\n\r\n${LONG}`),
    );
    for (const { world } of [trailing, declared]) {
      const { status, headers, body } = await rawRequest(world.port, call('x'));
      expect(status).toBe(200);
      expect(headers.get('transfer-encoding')).toBe('chunked');
      expect([headers.get('trailer'), headers.get('content-length')]).toEqual([null, null]);
      expect(body).toEndWith('a\r\n0\r\n\r\n');
    }
  });

  it('sends its head only with the first byte of its body', async () => {
    const { promise: called, resolve } = Promise.withResolvers<net.Socket>();
    await using started = await startBefore((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${LONG.length}\r\n\r\n`);
      resolve(socket);
    });
    const client = await open(started.world, call('x'));
    const socket = await called;
    for (let round = 0; round < 3; round++) await started.world.request('/api/health');
    expect(client.received).not.toContain('\r\n\r\n');
    socket.write(LONG);
    await client.closed;
    expect(client.received).toStartWith('HTTP/1.1 200 ');
  });
});

describe('a connection', () => {
  it('with a pipeline ends without a response, unless each is ready at once', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/a', () => new Response('ok')).on('GET /v1/b', () => new Response('ok'));
    const waiting = await open(world, call('a', '') + call('b'));
    await waiting.closed;
    expect(waiting.received).toBe('');
    expect(world.upstream.calls).not.toContain('GET /v1/b');
    const health = (lines: string) => `GET /api/health HTTP/1.1\r\nHost: x\r\n${lines}\r\n`;
    const ready = await open(world, health('') + health(CLOSE));
    await ready.closed;
    expect(ready.received.match(/HTTP\/1\.1 200 /g)).toHaveLength(2);
  });

  it('whose client has closed its half counts as gone: it gets no response, and the call is aborted', async () => {
    const { promise: called, resolve } = Promise.withResolvers<net.Socket>();
    await using started = await startBefore(resolve);
    const client = await open(started.world, call('x'));
    const socket = await called;
    const dropped = new Promise((done) => socket.on('close', done));
    client.hangUp();
    await dropped;
    await client.closed;
    expect(client.received).toBe('');
  });

  it.each(['GET', 'HEAD', 'PUT', 'DELETE'])(
    'that was kept and is reset gets a %s once more',
    async (method) => {
      const methods: string[] = [];
      const note = (request: string) => methods.push(request.split(' ', 1).join());
      await using started = await startBefore((socket, request) => {
        note(request);
        socket.write(request.startsWith('HEAD') ? OK.slice(0, -2) : OK);
        socket.on('data', (data) => {
          note(data.toString());
          socket.resetAndDestroy();
        });
      });
      const send = (verb: string) =>
        started.world.request('/api/upstream/v1/x', { method: verb, cookie: ACCESS_ONLY });
      await (await send('GET')).text();
      expect((await send(method)).status).toBe(200);
      expect(methods).toEqual(['GET', method, method]);
      expect(started.upstream.connections).toBe(2);
    },
  );
});

it('a response to HEAD has no Date', async () => {
  await using world = startWorld();
  const dates = ['GET', 'HEAD'].map(async (method) => {
    const { headers } = await rawRequest(
      world.port,
      `${method} /api/health HTTP/1.1\r\nHost: x\r\n${CLOSE}\r\n`,
    );
    return headers.has('date');
  });
  expect(await Promise.all(dates)).toEqual([true, false]);
});
