/**
 * Limits of Bun. A test fails when Bun lifts its limit: then delete the test, its row in src/README.md, and what the
 * gateway does instead.
 */

import { describe, expect, it } from 'bun:test';
import type net from 'node:net';
import { RawConnection, rawRequest } from '../support/raw-http.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { ACCESS_ONLY, ORIGIN, startWorld, type World } from '../support/world.ts';

const HEAD = `Host: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n`;
const CLOSE = 'Connection: close\r\n';
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
/** Larger than what the gateway reads first, so that it is streamed. */
const LONG = 64 * 1024;

function call(path: string, lines = CLOSE, method = 'GET'): string {
  return `${method} /api/upstream/v1/${path} HTTP/1.1\r\n${HEAD}${lines}\r\n`;
}

/** Sends the bytes and keeps the connection open. */
async function open({ port }: World, bytes: string): Promise<RawConnection> {
  const connection = new RawConnection(port);
  await connection.send(bytes);
  return connection;
}

describe('an interim response', () => {
  it('with status 103 from the upstream does not reach the client', async () => {
    await using upstream = await startRawUpstream((socket) =>
      socket.end(`HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n${OK}`),
    );
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const { status, headers, body } = await rawRequest(world.port, call('x'));
    expect(status).toBe(200);
    expect(headers.get('link')).toBeNull();
    expect(body).toBe('ok');
  });

  it('with status 100 is sent before the gateway has judged the request, and never by the upstream', async () => {
    await using world = startWorld();
    const { status, body } = await rawRequest(
      world.port,
      `POST /api/upstream/v1/x HTTP/1.1\r\nHost: x\r\n${CLOSE}Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi`,
    );
    expect(status).toBe(100);
    expect(body).toStartWith('HTTP/1.1 403 ');
    expect(world.upstream.received).toEqual([]);
  });

  it('is sent for an Expect header, which is not forwarded', async () => {
    await using world = startWorld();
    world.upstream.on('POST /v1/x', () => new Response('ok'));
    const lines = `${CLOSE}Expect: 100-continue\r\nContent-Length: 2\r\n`;
    const { status, body } = await rawRequest(world.port, `${call('x', lines, 'POST')}hi`);
    expect(status).toBe(100);
    expect(body).toStartWith('HTTP/1.1 200 ');
    const { headers, body: forwarded } = world.upstream.last('POST /v1/x');
    expect(headers.get('expect')).toBeNull();
    expect(forwarded).toBe('hi');
  });
});

describe('a trailer', () => {
  it('of a response does not reach the client', async () => {
    await using upstream = await startRawUpstream((socket) =>
      socket.end(
        `HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n${LONG.toString(16)}\r\n${'a'.repeat(LONG)}\r\n0\r\nX-Sum: 7\r\n\r\n`,
      ),
    );
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const { status, headers, body } = await rawRequest(world.port, call('x'));
    expect(status).toBe(200);
    expect(headers.get('transfer-encoding')).toBe('chunked');
    expect(body).toEndWith('a\r\n0\r\n\r\n');
    expect(headers.get('trailer')).toBeNull();
  });

  it('of a request makes Bun refuse it with a bare 400', async () => {
    await using world = startWorld();
    world.upstream.on('POST /v1/x', () => new Response('ok'));
    const { status, headers, body } = await rawRequest(
      world.port,
      `${call('x', `${CLOSE}Transfer-Encoding: chunked\r\n`, 'POST')}2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n`,
    );
    expect(status).toBe(400);
    expect([...headers.keys()]).toEqual(['connection']);
    expect(body).toBe('');
  });
});

describe('the head of a streamed response', () => {
  it('reaches the client only with the first byte of its body', async () => {
    const { promise: called, resolve } = Promise.withResolvers<net.Socket>();
    await using upstream = await startRawUpstream((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${LONG}\r\n\r\n`);
      resolve(socket);
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const client = await open(world, call('x'));
    const socket = await called;
    for (let round = 0; round < 3; round++) await world.request('/api/health');
    expect(client.received).not.toContain('\r\n\r\n');
    socket.write('a'.repeat(LONG));
    await client.closed;
    expect(client.received).toStartWith('HTTP/1.1 200 ');
    expect(client.received).toContain('\r\n\r\n');
  });
});

describe('a pipeline of requests', () => {
  it('ends the connection without a response while the first waits for the upstream', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/a', () => new Response('ok')).on('GET /v1/b', () => new Response('ok'));
    const client = await open(world, call('a', '') + call('b'));
    await client.closed;
    expect(client.received).toBe('');
    expect(world.upstream.calls).not.toContain('GET /v1/b');
  });

  it('is served in order when the gateway can respond at once', async () => {
    await using world = startWorld();
    const health = (lines: string) => `GET /api/health HTTP/1.1\r\nHost: x\r\n${lines}\r\n`;
    const client = await open(world, health('') + health(CLOSE));
    await client.closed;
    expect(client.received.match(/HTTP\/1\.1 200 /g)).toHaveLength(2);
  });
});

describe('a client that closes its half of the connection', () => {
  it('counts as gone: it gets no response, and the call is aborted', async () => {
    const { promise: called, resolve } = Promise.withResolvers<net.Socket>();
    await using upstream = await startRawUpstream(resolve);
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const client = await open(world, call('x'));
    const socket = await called;
    const dropped = new Promise((done) => socket.on('close', done));
    client.hangUp();
    for (let round = 0; round < 3; round++) await world.request('/api/health');
    socket.write(OK);
    await client.closed;
    expect(client.received).toBe('');
    await dropped;
  });
});

describe('a method that Bun does not know', () => {
  it.each(['GETT', 'get', 'GET-X'])('ends the connection without a response: %s', async (method) => {
    await using world = startWorld();
    const { status, body } = await rawRequest(world.port, call('x', CLOSE, method));
    expect(status).toBe(0);
    expect(body).toBe('');
    expect(world.upstream.received).toEqual([]);
  });
});

describe('the Date header', () => {
  it('is in the response to GET, and not in the response to HEAD', async () => {
    await using world = startWorld();
    const head = `/api/health HTTP/1.1\r\nHost: x\r\n${CLOSE}\r\n`;
    const [get, without] = await Promise.all([
      rawRequest(world.port, `GET ${head}`),
      rawRequest(world.port, `HEAD ${head}`),
    ]);
    expect(get.status).toBe(200);
    expect(get.headers.get('date')).toEndWith(' GMT');
    expect(without.status).toBe(200);
    expect(without.headers.get('date')).toBeNull();
  });
});

describe('a request that Bun itself refuses', () => {
  it.each([
    ['two lengths', 400, 'HTTP/1.1', 'Content-Length: 1\r\nContent-Length: 2\r\n'],
    ['a head of more than 16 KiB', 431, 'HTTP/1.1', `X: ${'a'.repeat(20_000)}\r\n`],
    ['another version of HTTP', 505, 'HTTP/1.2', ''],
  ])('has no envelope and no CORS headers: %s', async (_, expected, version, lines) => {
    await using world = startWorld();
    const { status, headers, body } = await rawRequest(
      world.port,
      `GET /api/upstream/v1/x ${version}\r\n${HEAD}${lines}\r\n`,
    );
    expect(status).toBe(expected);
    expect([...headers.keys()]).toEqual(['connection']);
    expect(body).toBe('');
    expect(world.upstream.received).toEqual([]);
  });
});

describe('a call on a kept connection that the upstream resets', () => {
  it.each(['GET', 'HEAD', 'PUT', 'DELETE'])('is sent again by Bun when it is a %s', async (method) => {
    const methods: string[] = [];
    const note = (request: string) => methods.push(request.split(' ', 1)[0] ?? '');
    await using upstream = await startRawUpstream((socket, request) => {
      note(request);
      socket.write(request.startsWith('HEAD') ? OK.slice(0, -2) : OK);
      socket.on('data', (data) => {
        note(data.toString());
        socket.resetAndDestroy();
      });
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const send = (verb: string) => world.request('/api/upstream/v1/x', { method: verb, cookie: ACCESS_ONLY });
    await (await send('GET')).text();
    expect((await send(method)).status).toBe(200);
    expect(methods).toEqual(['GET', method, method]);
    expect(upstream.connections).toBe(2);
  });
});
