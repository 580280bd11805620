import { describe, expect, it } from 'bun:test';
import type { Socket } from 'node:net';
import { messages } from '../../src/gateway/http/messages.ts';
import { GENERATE, PLAYBACK, PROXY } from '../support/long-calls.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { CLOSED } from '../support/session-calls.ts';
import { ACCESS_ONLY, envelopeMessage, startWorld, type World } from '../support/world.ts';

/** For 127.0.0.1, until 2126; nobody trusts it. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBhjCCASygAwIBAgIUIoA73iB5zG5BgeNmCUlxFMUIDeEwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjMxMTQ0MjZaGA8yMTI2MTAzMDExNDQy
NlowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABAG/
uGvOfrUre1KifFUHpIDTsNf2SGK6knkdmYZTg+aOuWEDkK5W2IhnEf1/ygb6iX9w
He94FdX7QidfRuW/LOyjZDBiMB0GA1UdDgQWBBQO1dIT6x5X3Ie1r7raK6d8IFD0
GTAfBgNVHSMEGDAWgBQO1dIT6x5X3Ie1r7raK6d8IFD0GTAPBgNVHRMBAf8EBTAD
AQH/MA8GA1UdEQQIMAaHBH8AAAEwCgYIKoZIzj0EAwIDSAAwRQIgKFY8EV0ZYPsZ
tst2+1fu4tlUxjheFDU6wGJo8ZwQ/SgCIQD6go83Op3PA78G6HtL/Jxjro0UuMEn
EpHkE2OxPpuJ+A==
-----END CERTIFICATE-----
`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgA8krdvq67207N7ax
HTeBv9DQKhiTW2tUOAHj4ZW5V/GhRANCAAQBv7hrzn61K3tSonxVB6SA07DX9khi
upJ5HZmGU4PmjrlhA5CuVtiIZxH9f8oG+ol/cB3veBXV+0InX0blvyzs
-----END PRIVATE KEY-----
`;

const MODELS = { send: (world: World) => world.request('/api/music/models', { cookie: ACCESS_ONLY }) };

const HEADERS = 'HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\n';
const DECLARED = `${HEADERS}Content-Length: 100000\r\n\r\n`;
const CHUNKED = `${HEADERS}Transfer-Encoding: chunked\r\n\r\n`;
const MANY = Array.from({ length: 300 }, (_, index) => `X-${index}: y\r\n`).join('');

type Fault = (socket: Socket) => void;
type Rows = [name: string, error: string, fault: Fault][];

const closes: Fault = (socket) => socket.end();
const resets: Fault = (socket) => socket.resetAndDestroy();

function ending(text: string): Fault {
  return (socket) => socket.end(text);
}

function resetting(text: string): Fault {
  return (socket) => socket.write(text, () => setImmediate(() => socket.resetAndDestroy()));
}

function drip(line: string, first = ''): Fault {
  return (socket) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(line), 10);
    socket.on('close', () => clearInterval(timer));
  };
}

/** Each breaks off before the body has begun, so that the client gets a response of the gateway's own. */
const BEFORE_THE_BODY: Rows = [
  ['resets before the headers', 'connection_terminated', resets],
  ['closes before the headers', 'connection_terminated', closes],
  ['sends half a header', 'connection_terminated', ending('HTTP/1.1 200 OK\r\nContent-Le')],
  ['sends garbage', 'http_protocol_error', ending('\0\x01 no HTTP at all\r\n\r\n')],
  ['sends a status of 600', 'http_protocol_error', ending('HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n')],
  ['switches protocols', 'http_protocol_error', ending('HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\n')],
  ['sends 300 headers', 'http_protocol_error', ending(`${HEADERS}${MANY}\r\n`)],
  ['closes after its head', 'connection_terminated', ending(DECLARED)],
  ['resets after its head', 'connection_terminated', resetting(DECLARED)],
  ['closes instead of the first chunk', 'connection_terminated', ending(CHUNKED)],
  ['begins with a bad chunk', 'http_protocol_error', ending(`${CHUNKED}zz\r\nabc\r\n`)],
];
const LATE: Rows = [
  ['never responds', 'http_response_timeout', () => {}],
  ['sends 100 Continue for ever', 'http_response_timeout', drip('HTTP/1.1 100 Continue\r\n\r\n')],
  ['drips its headers for ever', 'http_response_timeout', drip('X: y\r\n', 'HTTP/1.1 200 OK\r\n')],
];
/** Each begins well, and must not look complete at the client. */
const IN_THE_BODY: [name: string, error: string, begins: string, breaks: Fault][] = [
  ['sends less than its Content-Length', 'connection_terminated', `${DECLARED}some of it`, closes],
  ['resets in the body', 'connection_terminated', `${DECLARED}some`, resets],
  ['sends a bad chunk', 'http_protocol_error', `${CHUNKED}3\r\nabc\r\n`, ending('zz\r\nabc\r\n')],
  ['closes in the middle of a chunk', 'connection_terminated', `${CHUNKED}ff\r\nabc`, closes],
  ['leaves out the last chunk', 'connection_terminated', `${CHUNKED}3\r\nabc\r\n`, closes],
];

const CAUSES: Readonly<Record<string, string>> = {
  connection_terminated: 'TypeError ECONNRESET',
  http_protocol_error: 'TypeError InvalidHTTPResponse',
};

/** All routes call the upstream in the same way: one has every fault, and each other one those that its body changes. */
const CALLS = [
  { ...PROXY, name: 'a proxied call', call: 'proxy', rows: [...BEFORE_THE_BODY, ...LATE] },
  { ...PLAYBACK, call: 'public', rows: BEFORE_THE_BODY.slice(-1) },
  {
    ...GENERATE,
    name: 'a generation',
    call: 'music',
    rows: [...BEFORE_THE_BODY.slice(-4), ...LATE.slice(-1)],
  },
  { ...MODELS, name: 'models', call: 'models', rows: [...BEFORE_THE_BODY.slice(-4), ...LATE.slice(-1)] },
];

/** @returns the text for the client */
async function expectFailed(response: Response, error: string): Promise<string> {
  expect(response.headers.get('proxy-status')).toBe(`music-gateway; error=${error}`);
  expect(response.headers.get('access-control-expose-headers')).toContain('Proxy-Status');
  const message = await envelopeMessage(response, 502);
  expect(message).not.toContain('127.0.0.1');
  return message;
}

describe('an upstream that', () => {
  const rows = CALLS.flatMap(({ name, call, send, rows }) =>
    rows.map(([fault, error, breaks]) => [fault, name, error, breaks, { call, send }] as const),
  );
  it.each(rows)('%s makes %s a 502 with Proxy-Status %s', async (_, __, error, fault, { call, send }) => {
    await using upstream = await startRawUpstream(fault);
    const short = { TIMEOUT_READ_MS: '1000', TIMEOUT_STREAM_MS: '1000' };
    await using world = startWorld({ ...short, UPSTREAM_URL: upstream.url });
    await expectFailed(await send(world), error);
    expect(await world.line({ status: 502 })).toMatchObject({ upstream: [{ call, outcome: error }] });
    expect(upstream.connections).toBe(1);
    expect(world.admission.ledger.inUse).toBe(0);
    expect((await world.request('/api/health')).status).toBe(200);
  });

  it.each([
    ['refuses connections', CLOSED, 'connection_refused'],
    ['has no address', 'http://no-such-host.invalid', 'dns_error'],
  ])('%s makes a call a 502: it was never sent', async (_, url, error) => {
    await using world = startWorld({ UPSTREAM_URL: url });
    await expectFailed(await PROXY.send(world), error);
  });

  it.each([
    ...IN_THE_BODY.map((row) => [...row, PROXY] as const),
    ...IN_THE_BODY.slice(0, 1).map((row) => [...row, GENERATE] as const),
  ])('%s breaks the connection of a streamed response (%s)', async (_, cause, begins, breaks, { send }) => {
    const called = Promise.withResolvers<Socket>();
    await using upstream = await startRawUpstream((socket) => {
      socket.write(begins);
      called.resolve(socket);
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await send(world);
    expect(response.status).toBe(200);
    breaks(await called.promise);
    await expect(response.text()).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(await world.line({ brokenBody: true })).toMatchObject({ status: 200, cause: CAUSES[cause] });
  });

  it.each(IN_THE_BODY)('%s makes models a 502 with Proxy-Status %s', async (_, error, begins, breaks) => {
    await using upstream = await startRawUpstream((socket) => socket.write(begins, () => breaks(socket)));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    await expectFailed(await MODELS.send(world), error);
  });

  it('has an unknown certificate gets no request', async () => {
    let requests = 0;
    await using upstream = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls: { key: KEY, cert: CERTIFICATE },
      fetch() {
        requests++;
        return Response.json({});
      },
    });
    await using world = startWorld({ UPSTREAM_URL: `https://127.0.0.1:${upstream.port}` });
    await expectFailed(await PROXY.send(world), 'tls_certificate_error');
    expect(requests).toBe(0);
  });
});

describe('an error body of a generation', () => {
  it.each([
    ['never begins', ''],
    ['never ends', '{"message":"'],
    ['is silent after its text', '{"message":"text"}'],
    ['is far too long', `{"message":"${'x'.repeat(200_000)}`],
  ])('that %s yields no text, and does not keep its connection open', async (_, body) => {
    const closed = Promise.withResolvers<void>();
    await using upstream = await startRawUpstream((socket) => {
      socket.on('close', () => closed.resolve());
      socket.write(`HTTP/1.1 429 Too Many Requests\r\nContent-Length: 9000000\r\n\r\n${body}`);
    });
    await using world = startWorld({ TIMEOUT_READ_MS: '1000', UPSTREAM_URL: upstream.url });
    expect(await envelopeMessage(await GENERATE.send(world), 429)).toBe(messages.en.generationFailed);
    await closed.promise;
  });
});
