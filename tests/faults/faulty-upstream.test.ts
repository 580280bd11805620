import { describe, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { messages } from '../../src/gateway/http/messages.ts';
import { makeCertificate } from '../support/certificate.ts';
import { GENERATE, PLAYBACK, PROXY } from '../support/long-calls.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { describeWith, program } from '../support/requirements.ts';
import { ACCESS_ONLY, envelopeMessage, startWorld, type World } from '../support/world.ts';

const HEADERS = 'HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\n';
const DECLARED = `${HEADERS}Content-Length: 100000\r\n\r\n`;
const CHUNKED = `${HEADERS}Transfer-Encoding: chunked\r\n\r\n`;
const MANY = Array.from({ length: 300 }, (_, index) => `X-${index}: y\r\n`).join('');

type Fault = (socket: Socket) => void;

function ending(text: string): Fault {
  return (socket) => socket.end(text);
}

function resetting(text: string): Fault {
  return (socket) => socket.write(text, () => setImmediate(() => socket.resetAndDestroy()));
}

/** Each ends before the headers are complete, so that the client gets a response of the gateway's own. */
const BEFORE_THE_HEADERS: [name: string, error: string, fault: Fault][] = [
  ['resets before the headers', 'connection_terminated', (socket) => socket.resetAndDestroy()],
  ['closes before the headers', 'connection_terminated', (socket) => socket.destroy()],
  ['sends half a header', 'connection_terminated', ending('HTTP/1.1 200 OK\r\nContent-Le')],
  ['sends garbage', 'http_protocol_error', ending('\0\x01 no HTTP at all\r\n\r\n')],
  ['sends a status of 600', 'http_protocol_error', ending('HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n')],
  ['switches protocols', 'http_protocol_error', ending('HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\n')],
  ['sends 300 headers', 'http_protocol_error', ending(`${HEADERS}${MANY}\r\n`)],
  ['never responds', 'http_response_timeout', () => {}],
  ['sends 100 Continue for ever', 'http_response_timeout', drip('HTTP/1.1 100 Continue\r\n\r\n')],
  ['drips its headers for ever', 'http_response_timeout', drip('X: y\r\n', 'HTTP/1.1 200 OK\r\n')],
];

/** Each begins well, and must not look complete at the client. */
const IN_THE_BODY: [name: string, fault: Fault][] = [
  ['sends less than its Content-Length', ending(`${DECLARED}some of it`)],
  ['resets in the body', resetting(`${DECLARED}some`)],
  ['sends a bad chunk', ending(`${CHUNKED}3\r\nabc\r\nzz\r\nabc\r\n`)],
  ['closes in the middle of a chunk', ending(`${CHUNKED}ff\r\nabc`)],
  ['leaves out the last chunk', ending(`${CHUNKED}3\r\nabc\r\n`)],
];

/** Each breaks off after the headers and before the first byte of the body. */
const BEFORE_THE_BODY: [name: string, error: string, fault: Fault][] = [
  ['closes', 'connection_terminated', ending(DECLARED)],
  ['resets', 'connection_terminated', resetting(DECLARED)],
  ['closes instead of the first chunk', 'connection_terminated', ending(CHUNKED)],
  ['sends a bad chunk', 'http_protocol_error', ending(`${CHUNKED}zz\r\nabc\r\n`)],
];

function drip(line: string, first = ''): Fault {
  return (socket) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(line), 10);
    socket.on('close', () => clearInterval(timer));
  };
}

const MODELS = {
  name: 'models',
  send: (world: World) => world.request('/api/music/models', { cookie: ACCESS_ONLY }),
};
const SHORT = { TIMEOUT_READ_MS: '1000', TIMEOUT_STREAM_MS: '1000' };

/** @returns the text for the client */
async function expectFailed(response: Response, error: string): Promise<string> {
  expect(response.headers.get('proxy-status')).toBe(`music-gateway; error=${error}`);
  expect(response.headers.get('access-control-expose-headers')).toContain('Proxy-Status');
  const message = await envelopeMessage(response, 502);
  expect(message).not.toContain('127.0.0.1');
  return message;
}

async function expectServed(world: World): Promise<void> {
  expect((await world.request('/api/health')).status).toBe(200);
}

describe.each([MODELS, GENERATE, PROXY, PLAYBACK])('$name with an upstream that', ({ send }) => {
  it.each(BEFORE_THE_HEADERS)('%s responds with 502 and Proxy-Status %s', async (_name, error, fault) => {
    await using upstream = await startRawUpstream(fault);
    await using world = startWorld({ ...SHORT, UPSTREAM_URL: upstream.url });
    await expectFailed(await send(world), error);
    await expectServed(world);
  });

  it.each([
    ['refuses connections', 'http://127.0.0.1:9', 'connection_refused'],
    ['has no address', 'http://no-such-host.invalid', 'dns_error'],
  ])('%s responds with 502: the call was never sent', async (_, url, error) => {
    await using world = startWorld({ UPSTREAM_URL: url });
    await expectFailed(await send(world), error);
  });

  it.each(IN_THE_BODY)('%s never gives the client a complete response', async (_name, fault) => {
    await using upstream = await startRawUpstream(fault);
    await using world = startWorld({ ...SHORT, UPSTREAM_URL: upstream.url });
    const outcome = await send(world)
      .then(async (response) =>
        response.status === 502 ? envelopeMessage(response, 502) : { complete: await response.text() },
      )
      .catch((error: Error) => error);
    expect(typeof outcome === 'string' || outcome instanceof Error).toBe(true);
    await expectServed(world);
  });
});

describe.each([
  { ...GENERATE, call: 'music' },
  { ...PROXY, call: 'proxy' },
  { ...PLAYBACK, call: 'public' },
])('$name with an upstream that after its head', ({ send, call }) => {
  it.each(BEFORE_THE_BODY)('%s is a 502 with Proxy-Status %s', async (_name, error, fault) => {
    await using upstream = await startRawUpstream(fault);
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const message = await expectFailed(await send(world), error);
    expect(message).toBe(messages.en.upstreamUnreachable);
    expect(await world.line({ status: 502 })).toMatchObject({ upstream: [{ call, outcome: error }] });
    expect(upstream.connections).toBe(1);
    await expectServed(world);
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

describeWith([program('openssl')], 'an upstream with an unknown certificate', () => {
  it('gets no request', async () => {
    const folder = await mkdtemp(`${tmpdir()}/certificate-`);
    const cert = await makeCertificate(folder);
    const key = await Bun.file(`${folder}/key.pem`).text();
    await rm(folder, { recursive: true });
    let requests = 0;
    await using upstream = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls: { key, cert },
      fetch() {
        requests++;
        return Response.json({});
      },
    });
    await using world = startWorld({ UPSTREAM_URL: `https://127.0.0.1:${upstream.port}` });
    await expectFailed(await MODELS.send(world), 'tls_certificate_error');
    expect(requests).toBe(0);
  });
});
