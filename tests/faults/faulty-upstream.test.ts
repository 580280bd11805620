import { describe, expect, it } from 'bun:test';
import type { Socket } from 'node:net';
import { messages } from '../../src/gateway/http/messages.ts';
import { CERTIFICATE } from '../support/certificate.ts';
import { send } from '../support/long-calls.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { BUFFERED, GENERATE, PUBLIC, proxied } from '../support/routes.ts';
import { envelopeMessage, startWorld } from '../support/world.ts';

const GET = proxied('GET');
const HEADERS = 'HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\n';
const DECLARED = `${HEADERS}Content-Length: 100000\r\n\r\n`;
const CHUNKED = `${HEADERS}Transfer-Encoding: chunked\r\n\r\n`;
const MANY = Array.from({ length: 300 }, (_, index) => `X-${index}: y\r\n`).join('');

type Fault = (socket: Socket) => void;
type Row = [fault: string, error: string, breaks: Fault];

const closes: Fault = (socket) => socket.end();
const resets: Fault = (socket) => socket.resetAndDestroy();

function ending(text: string): Fault {
  return (socket) => socket.end(text);
}

function beginning(text: string, breaks: Fault): Fault {
  return (socket) => socket.write(text, () => setImmediate(() => breaks(socket)));
}

function drip(line: string, first = ''): Fault {
  return (socket) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(line), 10);
    socket.on('close', () => clearInterval(timer));
  };
}

/** The client gets a response of the gateway's own for each. */
const BEFORE_THE_HEAD: Row[] = [
  ['resets before the headers', 'connection_terminated', resets],
  ['closes before the headers', 'connection_terminated', closes],
  ['sends half a header', 'connection_terminated', ending('HTTP/1.1 200 OK\r\nContent-Le')],
  ['sends garbage', 'http_protocol_error', ending('\0\x01 no HTTP at all\r\n\r\n')],
  ['sends a status of 600', 'http_protocol_error', ending('HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n')],
  ['switches protocols', 'http_protocol_error', ending('HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\n')],
  ['sends 300 headers', 'http_protocol_error', ending(`${HEADERS}${MANY}\r\n`)],
  ['sends 100 Continue for ever', 'http_response_timeout', drip('HTTP/1.1 100 Continue\r\n\r\n')],
  ['drips its headers for ever', 'http_response_timeout', drip('X: y\r\n', 'HTTP/1.1 200 OK\r\n')],
];
const BEFORE_THE_BODY: Row[] = [
  ['closes after its head', 'connection_terminated', ending(DECLARED)],
  ['resets after its head', 'connection_terminated', beginning(DECLARED, resets)],
  ['closes instead of the first chunk', 'connection_terminated', ending(CHUNKED)],
  ['begins with a bad chunk', 'http_protocol_error', ending(`${CHUNKED}zz\r\nabc\r\n`)],
];
/** Each begins well, and must not look complete at the client. */
const IN_THE_BODY: [fault: string, error: string, begins: string, breaks: Fault][] = [
  ['sends less than its Content-Length', 'connection_terminated', `${DECLARED}some of it`, closes],
  ['resets in the body', 'connection_terminated', `${DECLARED}some`, resets],
  ['sends a bad chunk', 'http_protocol_error', `${CHUNKED}3\r\nabc\r\n`, ending('zz\r\nabc\r\n')],
  ['closes in the middle of a chunk', 'connection_terminated', `${CHUNKED}ff\r\nabc`, closes],
  ['leaves out the last chunk', 'connection_terminated', `${CHUNKED}3\r\nabc\r\n`, closes],
];

const TOO_LARGE = 8 * 1024 ** 2 + 1;
const INTO_MEMORY: Row[] = [
  ...IN_THE_BODY.map(([name, error, text, breaks]): Row => [name, error, beginning(text, breaks)]),
  [
    'sends more than 8 MB',
    'http_protocol_error',
    ending(`${HEADERS}Content-Length: ${TOO_LARGE}\r\n\r\n${'x'.repeat(TOO_LARGE)}`),
  ],
];
const [, MODELS = GET] = BUFFERED;

/** All routes call the upstream in the same way: one has every fault, and each other one those that its body changes. */
const CALLS = [
  { call: 'proxy', route: GET, rows: [...BEFORE_THE_HEAD, ...BEFORE_THE_BODY] },
  { call: 'public', route: PUBLIC, rows: BEFORE_THE_BODY.slice(-1) },
  { call: 'music', route: GENERATE, rows: BEFORE_THE_BODY },
  { call: 'models', route: MODELS, rows: INTO_MEMORY },
].flatMap(({ rows, ...on }) => rows.map(([fault, error, breaks]) => ({ ...on, fault, error, breaks })));

/** The other errors have the text for an upstream that cannot be reached. */
const TEXTS = new Map<string, string>([
  ['http_protocol_error', messages.en.upstreamInvalid],
  ['http_response_timeout', messages.en.upstreamTimeout],
]);

/** Asserts a 502 of the gateway's own, whose text does not name the address of the upstream. */
async function expectFailed(response: Response, error: string): Promise<void> {
  expect(response.headers.get('proxy-status')).toBe(`music-gateway; error=${error}`);
  expect(response.headers.get('access-control-expose-headers')).toContain('Proxy-Status');
  expect(await envelopeMessage(response, 502)).toBe(TEXTS.get(error) ?? messages.en.upstreamUnreachable);
}

describe('an upstream that', () => {
  it.each(CALLS)('$fault makes $call a 502 with $error', async ({ call, route, error, breaks }) => {
    await using upstream = await startRawUpstream(breaks);
    const short = error === 'http_response_timeout' && { TIMEOUT_STREAM_MS: '1000' };
    await using world = startWorld({ ...short, UPSTREAM_URL: upstream.url });
    await expectFailed(await send(world, route), error);
    expect(await world.line({ status: 502 })).toMatchObject({ upstream: [{ call, outcome: error }] });
    expect([upstream.connections(), world.admission.ledger.inUse]).toEqual([1, 0]);
    expect((await world.request('/api/health')).status).toBe(200);
  });

  it.each([
    ...IN_THE_BODY.map((row) => [...row, GET] as const),
    ...IN_THE_BODY.slice(0, 1).map((row) => [...row, GENERATE] as const),
  ])('%s breaks the connection of a streamed response (%s)', async (_, error, begins, breaks, route) => {
    const called = Promise.withResolvers<Socket>();
    await using upstream = await startRawUpstream((socket) => {
      socket.write(begins);
      called.resolve(socket);
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await send(world, route);
    expect(response.status).toBe(200);
    breaks(await called.promise);
    await expect(response.text()).rejects.toMatchObject({ code: 'ECONNRESET' });
    const cause = error === 'http_protocol_error' ? 'TypeError InvalidHTTPResponse' : 'TypeError ECONNRESET';
    expect(await world.line({ brokenBody: true })).toMatchObject({ status: 200, cause });
  });

  it.each([
    ['has no address', 'http://no-such-host.invalid', 'dns_error'],
    ['has an unknown certificate', undefined, 'tls_certificate_error'],
  ])('%s fails a call, which is never sent', async (_, url, error) => {
    const pem = Bun.file(CERTIFICATE);
    const fetch = () => new Response('a request');
    await using secure = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: { key: pem, cert: pem }, fetch });
    await using world = startWorld({ UPSTREAM_URL: url ?? `https://127.0.0.1:${secure.port}` });
    await expectFailed(await send(world, GET), error);
  });
});

describe('an error body of a generation', () => {
  it.each([
    ['never begins', '', 9_000_000],
    ['never ends', '{"message":"', 9_000_000],
    ['is silent after its text', '{"message":"text"}', 9_000_000],
    ['is short and never ends', '{"message":"', 50],
    ['is far too long', `{"message":"${'x'.repeat(200_000)}`, 9_000_000],
  ])('that %s yields no text, and does not keep its connection open', async (_, body, length) => {
    const closed = Promise.withResolvers<void>();
    await using upstream = await startRawUpstream((socket) => {
      socket.on('close', () => closed.resolve());
      socket.write(`HTTP/1.1 429 Too Many Requests\r\nContent-Length: ${length}\r\n\r\n${body}`);
    });
    await using world = startWorld({ TIMEOUT_READ_MS: '1000', UPSTREAM_URL: upstream.url });
    expect(await envelopeMessage(await send(world, GENERATE), 429)).toBe(messages.en.generationFailed);
    await closed.promise;
  });
});
