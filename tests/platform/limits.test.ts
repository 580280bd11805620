/**
 * Limits of Bun, which only another version of it can change. A test fails when Bun lifts its limit: then delete the
 * test, its row in src/README.md, and what the gateway does instead.
 */

import { afterAll, expect, it } from 'bun:test';
import type net from 'node:net';
import { RawConnection, rawRequest } from '../support/raw-http.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { ACCESS_ONLY, ORIGIN, startWorld } from '../support/world.ts';

const HEAD = `Host: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n`;
const CLOSE = 'Connection: close\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const KEPT = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const OK = KEPT.replace('\r\n', `\r\n${CLOSE}`);
/** Larger than what the gateway reads first, so that it is streamed. */
const LONG = 'a'.repeat(64 * 1024);
const LONG_HEAD = `HTTP/1.1 200 OK\r\n${CLOSE}Content-Length: ${LONG.length}\r\n\r\n`;
const TRAILERS = `HTTP/1.1 200 OK\r\n${CLOSE}Trailer: X-Sum\r\n${CHUNKED}\r\n10000\r\n${LONG}\r\n0\r\nX-Sum: 7\r\n\r\n`;

let respond: (socket: net.Socket) => void;
/** The method and path of each request. */
const seen: string[] = [];
const upstream = await startRawUpstream((socket, request) => {
  seen.push(request.split(' HTTP', 1).join());
  socket.on('data', (data) => seen.push(data.toString().split(' HTTP', 1).join()));
  respond(socket);
});
const world = startWorld({ UPSTREAM_URL: upstream.url });
afterAll(() => world[Symbol.asyncDispose]().then(() => upstream[Symbol.asyncDispose]()));

function call(path: string, lines = CLOSE, method = 'GET', version = 'HTTP/1.1'): string {
  return `${method} /api/upstream/v1/${path} ${version}\r\n${HEAD}${lines}\r\n`;
}

function health(method: string, lines = CLOSE): string {
  return `${method} /api/health HTTP/1.1\r\nHost: x\r\n${lines}\r\n`;
}

/** Sends the bytes to the gateway, and responds at the upstream. */
function send(bytes: string, response: string) {
  respond = (socket) => socket.end(response);
  return rawRequest(world.port, bytes);
}

/** Sends the bytes to the gateway, and returns its connections to the client and, once called, to the upstream. */
async function open(bytes: string) {
  const { promise: called, resolve } = Promise.withResolvers<net.Socket>();
  respond = resolve;
  const client = new RawConnection(world.port);
  client.send(bytes);
  return { client, called };
}

it.each([
  ['two lengths', 400, call('x', 'Content-Length: 1\r\nContent-Length: 2\r\n')],
  ['a head of more than 16 KiB', 431, call('x', `X: ${'a'.repeat(20_000)}\r\n`)],
  ['another version of HTTP', 505, call('x', CLOSE, 'GET', 'HTTP/1.2')],
  ['trailers', 400, `${call('x', CLOSE + CHUNKED, 'POST')}2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n`],
  ['the method GETT', 0, call('x', CLOSE, 'GETT')],
  ['the method get', 0, call('x', CLOSE, 'get')],
])('Bun itself refuses %s with a bare %i, or without a response', async (_, expected, bytes) => {
  const { status, headers, body } = await send(bytes, OK);
  const names = expected ? ['connection'] : [];
  expect({ status, body, names: [...headers.keys()] }).toEqual({ status: expected, body: '', names });
});

it('an interim response of the upstream does not reach the client', async () => {
  const early = 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n';
  const { status, headers, body } = await send(call('x'), early + OK);
  expect([status, headers.get('link'), body]).toEqual([200, null, 'ok']);
});

it('100 is sent for an Expect header before the gateway has judged the request', async () => {
  const bytes = `${call('x', `${CLOSE}Expect: 100-continue\r\nContent-Length: 2\r\n`, 'POST')}hi`;
  const { status, body } = await send(bytes.replace(ORIGIN, 'http://evil.test'), OK);
  expect([status, body.slice(0, 13)]).toEqual([100, 'HTTP/1.1 403 ']);
});

it.each([
  ['its trailers', TRAILERS],
  ['its length', LONG_HEAD + LONG],
])('a streamed response loses %s', async (_, response) => {
  const { status, headers, body } = await send(call('x'), response);
  const framing = ['transfer-encoding', 'trailer', 'content-length'].map((name) => headers.get(name));
  expect([status, ...framing]).toEqual([200, 'chunked', null, null]);
  expect(body).toEndWith('a\r\n0\r\n\r\n');
});

it('the content of a GET in chunks cannot be seen', async () => {
  const bodies: unknown[] = [];
  await using server = Bun.serve({
    port: 0,
    fetch({ body, headers }) {
      bodies.push(body, headers.get('transfer-encoding'));
      return new Response('ok');
    },
  });
  await rawRequest(server.port ?? 0, `${health('GET', CLOSE + CHUNKED)}2\r\nhi\r\n0\r\n\r\n`);
  expect(bodies).toEqual([null, 'chunked']);
});

it('a streamed response sends its head only with the first byte of its body', async () => {
  const { client, called } = await open(call('x'));
  const socket = await called;
  socket.write(LONG_HEAD);
  for (let round = 0; round < 3; round++) await world.request('/api/health');
  expect(client.received).not.toContain('\r\n\r\n');
  socket.write(LONG);
  await client.closed;
  expect(client.received).toStartWith('HTTP/1.1 200 ');
});

it('a connection with a pipeline ends without a response, unless each is ready at once', async () => {
  const waiting = await open(call('a', '') + call('b'));
  await waiting.client.closed;
  expect(waiting.client.received).toBe('');
  expect(seen).not.toContain('GET /v1/b');
  const { status, body } = await rawRequest(world.port, health('GET', '') + health('GET'));
  expect([status, body]).toEqual([200, expect.stringContaining('HTTP/1.1 200 ')]);
});

it('a client that has closed its half counts as gone: it gets no response, and its call is aborted', async () => {
  const { client, called } = await open(call('x'));
  const socket = await called;
  const dropped = new Promise((done) => socket.on('close', done));
  client.hangUp();
  await dropped;
  await client.closed;
  expect(client.received).toBe('');
});

it.each(['GET', 'PUT', 'DELETE'])('a kept connection that is reset gets a %s once more', async (method) => {
  const path = `/v1/kept-for-${method}`;
  const request = (verb: string) =>
    world.request(`/api/upstream${path}`, { method: verb, cookie: ACCESS_ONLY });
  respond = (socket) => {
    socket.write(KEPT);
    socket.on('data', () => socket.resetAndDestroy());
    respond = (other) => other.end(OK);
  };
  await (await request('GET')).text();
  expect((await request(method)).status).toBe(200);
  expect(seen.filter((each) => each.endsWith(path))).toEqual(
    ['GET', method, method].map((verb) => `${verb} ${path}`),
  );
});

it('a body without length and chunks looks complete when the upstream resets it', async () => {
  const { client, called } = await open(call('x'));
  const socket = await called;
  socket.write('HTTP/1.1 200 OK\r\n\r\nhello');
  await client.changed(5000);
  socket.resetAndDestroy();
  await client.closed;
  expect(client.received).toEndWith('5\r\nhello\r\n0\r\n\r\n');
});

it('a response to HEAD has no Date, unlike one to GET', async () => {
  for (const method of ['HEAD', 'GET']) {
    const { headers } = await rawRequest(world.port, health(method));
    expect(headers.has('date')).toBe(method === 'GET');
  }
});

// Of a request no clock of the gateway's own sees the head before it is complete.
it('the idle timeout, which src/gateway/gateway.ts sets, cuts off a head that drips', async () => {
  const fetch = () => new Response();
  await using server = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 2, fetch });
  const client = new RawConnection(server.port ?? 0);
  client.send('GET / HTTP/1.1\r\nHost: x\r\n');
  const drip = setInterval(() => client.send('x'), 100);
  await client.closed;
  clearInterval(drip);
  expect(client.received).toBe('');
});
