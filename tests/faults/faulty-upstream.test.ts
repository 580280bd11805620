import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import tls from 'node:tls';
import { messages } from '../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { describeWith, program } from '../support/requirements.ts';
import { ACCESS_ONLY, envelopeMessage, startWorld, type World } from '../support/world.ts';

const HEADERS = 'HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\n';
const MANY = Array.from({ length: 300 }, (_, index) => `X-${index}: y\r\n`).join('');

type Fault = (socket: Socket) => void;

/** Each ends before the headers are through, so that the client gets an answer of the gateway's own. */
const BEFORE_THE_HEADERS: [name: string, error: string, fault: Fault][] = [
  ['resets before the headers', 'connection_terminated', (socket) => socket.resetAndDestroy()],
  ['closes before the headers', 'connection_terminated', (socket) => socket.destroy()],
  ['sends half a header', 'connection_terminated', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le')],
  ['sends garbage', 'http_protocol_error', (socket) => socket.end('\0\x01 no HTTP at all\r\n\r\n')],
  [
    'sends a status of 600',
    'http_protocol_error',
    (socket) => socket.end('HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n'),
  ],
  [
    'switches protocols',
    'http_protocol_error',
    (socket) => socket.end('HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\n'),
  ],
  ['sends 300 headers', 'http_protocol_error', (socket) => socket.end(`${HEADERS}${MANY}\r\n`)],
  ['never answers', 'http_response_timeout', () => {}],
  ['sends 100 Continue for ever', 'http_response_timeout', drip('HTTP/1.1 100 Continue\r\n\r\n')],
  ['drips its headers for ever', 'http_response_timeout', drip('X: y\r\n', 'HTTP/1.1 200 OK\r\n')],
];

/** Each begins well, and must not look whole at the client. */
const IN_THE_BODY: [name: string, fault: Fault][] = [
  [
    'sends less than its Content-Length',
    (socket) => socket.end(`${HEADERS}Content-Length: 100000\r\n\r\nsome of it`),
  ],
  [
    'resets in the body',
    (socket) =>
      socket.write(`${HEADERS}Content-Length: 100000\r\n\r\nsome`, () =>
        setImmediate(() => socket.resetAndDestroy()),
      ),
  ],
  [
    'sends a bad chunk',
    (socket) => socket.end(`${HEADERS}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\nabc\r\n`),
  ],
  [
    'closes in the middle of a chunk',
    (socket) => socket.end(`${HEADERS}Transfer-Encoding: chunked\r\n\r\nff\r\nabc`),
  ],
  [
    'leaves out the last chunk',
    (socket) => socket.end(`${HEADERS}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`),
  ],
];

function drip(line: string, first = ''): Fault {
  return (socket) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(line), 10);
    socket.on('close', () => clearInterval(timer));
  };
}

const ROUTES: [name: string, send: (world: World) => Promise<Response>][] = [
  ['models', (world) => world.request('/api/music/models', { cookie: ACCESS_ONLY })],
  [
    'generate',
    (world) =>
      world.request('/api/music/generate', {
        cookie: ACCESS_ONLY,
        json: { model: 'm', prompt: 'p', music_length_ms: 3000 },
      }),
  ],
  [
    'the proxy',
    (world) => world.request('/api/upstream/v1/music/creations/1/content', { cookie: ACCESS_ONLY }),
  ],
  ['public playback', (world) => world.request('/api/upstream/v1/music/public/1/content')],
];

const SHORT = { TIMEOUT_READ_MS: '300', TIMEOUT_STREAM_MS: '300' };

/** The next request goes to the same gateway, and to an upstream that has come to its senses. */
async function expectServed(world: World): Promise<void> {
  expect((await world.request('/api/health')).status).toBe(200);
}

describe.each(ROUTES)('%s with an upstream that', (_route, send) => {
  it.each(BEFORE_THE_HEADERS)('%s answers 502 with Proxy-Status %s', async (_name, error, fault) => {
    await using upstream = await startRawUpstream(fault);
    await using world = startWorld({ ...SHORT, UPSTREAM_URL: upstream.url });
    const response = await send(world);
    expect(response.headers.get('proxy-status')).toBe(`music-gateway; error=${error}`);
    expect(response.headers.get('access-control-expose-headers')).toContain('Proxy-Status');
    expect(await envelopeMessage(response, 502)).not.toContain('127.0.0.1');
    await expectServed(world);
  });

  it('refuses connections answers 502: the call was never sent', async () => {
    await using world = startWorld({ UPSTREAM_URL: 'http://127.0.0.1:9' });
    const response = await send(world);
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=connection_refused');
    await envelopeMessage(response, 502);
  });

  it('has no address answers 502: the call was never sent', async () => {
    await using world = startWorld({ UPSTREAM_URL: 'http://no-such-host.invalid' });
    const response = await send(world);
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=dns_error');
    await envelopeMessage(response, 502);
  });

  it.each(IN_THE_BODY)('%s never gives the client a whole answer', async (_name, fault) => {
    await using upstream = await startRawUpstream(fault);
    await using world = startWorld({ ...SHORT, UPSTREAM_URL: upstream.url });
    const outcome = await send(world)
      .then(
        (response): Promise<string | Uint8Array> =>
          response.status === 502 ? envelopeMessage(response, 502) : response.bytes(),
      )
      .catch((error: Error) => error);
    expect(typeof outcome === 'string' || outcome instanceof Error).toBe(true);
    await expectServed(world);
  });
});

/** Upstreams that have sent the head of a generation and break off before the first byte of its audio. */
const BEFORE_THE_AUDIO: [name: string, error: string, fault: Fault][] = [
  ['closes', 'connection_terminated', (socket) => socket.end(`${HEADERS}Content-Length: 100000\r\n\r\n`)],
  [
    'resets',
    'connection_terminated',
    (socket) =>
      socket.write(`${HEADERS}Content-Length: 100000\r\n\r\n`, () =>
        setImmediate(() => socket.resetAndDestroy()),
      ),
  ],
  [
    'closes instead of the first chunk',
    'connection_terminated',
    (socket) => socket.end(`${HEADERS}Transfer-Encoding: chunked\r\n\r\n`),
  ],
  [
    'sends a bad chunk',
    'http_protocol_error',
    (socket) => socket.end(`${HEADERS}Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n`),
  ],
];

describe('generate with an upstream that after its head', () => {
  it.each(BEFORE_THE_AUDIO)('%s is a 502 with Proxy-Status %s', async (_name, error, fault) => {
    await using upstream = await startRawUpstream(fault);
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request('/api/music/generate', {
      cookie: ACCESS_ONLY,
      json: { model: 'm', prompt: 'p', music_length_ms: 3000 },
    });
    expect(response.headers.get('proxy-status')).toBe(`music-gateway; error=${error}`);
    expect(await envelopeMessage(response, 502)).toBe(messages.upstreamUnreachable.en);
    expect(await world.line({ status: 502 })).toMatchObject({
      upstream: [{ call: 'music', outcome: error }],
    });
    expect(upstream.connections).toBe(1);
    await expectServed(world);
  });
});

describe('the body of a streamed answer that breaks', () => {
  it.each(IN_THE_BODY)('breaks at the client when the upstream %s', async (_name, fault) => {
    await using upstream = await startRawUpstream(fault);
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const read = world
      .request('/api/upstream/v1/x', { cookie: ACCESS_ONLY })
      .then((response) => response.bytes());
    await expect(read).rejects.toThrow();
  });
});

describe('an error body of a generation', () => {
  it.each([
    ['never ends', ''],
    ['is far too long', 'x'.repeat(200_000)],
  ])('that %s does not hold its connection', async (_, more) => {
    const closed = Promise.withResolvers<void>();
    await using upstream = await startRawUpstream((socket) => {
      socket.on('close', () => closed.resolve());
      socket.write(`HTTP/1.1 429 Too Many Requests\r\nContent-Length: 9000000\r\n\r\n{"message":"${more}`);
    });
    await using world = startWorld({ TIMEOUT_READ_MS: '300', UPSTREAM_URL: upstream.url });
    const response = await world.request('/api/music/generate', {
      cookie: ACCESS_ONLY,
      json: { model: 'm', prompt: 'p', music_length_ms: 3000 },
    });
    await envelopeMessage(response, 429);
    await closed.promise;
  });
});

describeWith([program('openssl')], 'an upstream with an unknown certificate', () => {
  let folder = '';
  let server: tls.Server;
  beforeAll(async () => {
    folder = await mkdtemp(`${tmpdir()}/certificate-`);
    const openssl = Bun.spawn(
      [
        'openssl',
        'req',
        '-x509',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-days',
        '2',
        '-subj',
        '/CN=localhost',
        '-keyout',
        `${folder}/key.pem`,
        '-out',
        `${folder}/certificate.pem`,
      ],
      { stdout: 'ignore', stderr: 'ignore' },
    );
    expect(await openssl.exited).toBe(0);
    const [key, cert] = await Promise.all(
      ['key', 'certificate'].map((name) => Bun.file(`${folder}/${name}.pem`).text()),
    );
    server = tls.createServer({ key: key ?? '', cert: cert ?? '' }, (socket) => socket.on('error', () => {}));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(async () => {
    server.close();
    await rm(folder, { recursive: true });
  });

  it('is not talked to', async () => {
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    await using world = startWorld({ UPSTREAM_URL: `https://127.0.0.1:${port}` });
    const response = await world.request('/api/music/models', { cookie: ACCESS_ONLY });
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=tls_certificate_error');
    await envelopeMessage(response, 502);
  });
});
