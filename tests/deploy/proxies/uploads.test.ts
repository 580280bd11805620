import { afterAll, beforeAll, expect, it } from 'bun:test';
import { createHash, randomBytes } from 'node:crypto';
import { messages } from '../../../src/gateway/http/messages.ts';
import { accountOf, resetPeak } from '../../bench/accounting.ts';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { describeWith, LINUX, program } from '../../support/requirements.ts';
import { ORIGIN, SIGNED_IN, testSettings } from '../../support/world.ts';
import { startTlsProxy, TLS_PROXIES, type TlsProxy, TRUST } from './tls-proxies.ts';

const LIMIT_BYTES = testSettings().maxUploadBytes;
const PATH = '/api/upstream/v1/files';
/** An upload took 6 to 30 on two cores. */
const MOST_MORE_MB = 40;
const PIECE = randomBytes(1024 * 1024);
const FORM = { start: '--x\r\nContent-Disposition: form-data; name="f"\r\n\r\n', end: '\r\n--x--\r\n' };

/** Its pieces differ, so that a lost or repeated one shows. */
async function* fileOf(bytes: number): AsyncGenerator<Buffer<ArrayBuffer>> {
  for (let start = 0; start < bytes; start += PIECE.length) {
    const piece = Buffer.from(PIECE);
    piece.writeDoubleLE(start);
    yield piece.subarray(0, bytes - start);
  }
}

async function* formOf(bytes: number): AsyncGenerator<Buffer<ArrayBuffer>> {
  yield Buffer.from(FORM.start);
  yield* fileOf(bytes - FORM.start.length - FORM.end.length);
  yield Buffer.from(FORM.end);
}

const KINDS = {
  raw: { type: 'audio/wav', content: fileOf },
  multipart: { type: 'multipart/form-data; boundary=x', content: formOf },
};

async function digest(body: AsyncIterable<Uint8Array>) {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of body) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, hash: hash.digest('hex') };
}

for (const { program: name, prepare } of TLS_PROXIES) {
  describeWith([program(name), LINUX], `an upload through ${name}, as configured in deploy,`, () => {
    const stack = new AsyncDisposableStack();
    const received: Awaited<ReturnType<typeof digest>>[] = [];
    let arrival = Promise.withResolvers<void>();
    let gateway: GatewayProcess;
    let proxy: TlsProxy;

    beforeAll(async () => {
      const upstream = Bun.serve({
        port: 0,
        hostname: '127.0.0.1',
        maxRequestBodySize: Number.MAX_SAFE_INTEGER,
        routes: { '/v1/me': Response.json({}) },
        async fetch({ body }) {
          arrival.resolve();
          received.push(await digest(body ?? new Blob().stream()));
          return new Response(null, { status: 201 });
        },
      });
      stack.defer(() => upstream.stop(true));
      gateway = stack.use(await startGatewayProcess({ UPSTREAM_URL: `http://127.0.0.1:${upstream.port}` }));
      proxy = stack.use(await startTlsProxy(prepare, Number(new URL(gateway.url).port)));
    }, 60_000);
    afterAll(() => stack.disposeAsync());

    /** By POST, from a user. */
    const upload = {
      async 'HTTP/1.1'(body: AsyncGenerator<Buffer<ArrayBuffer>>, headers: Record<string, string>) {
        const sent = { origin: ORIGIN, cookie: SIGNED_IN, ...headers };
        const response = await fetch(proxy.url + PATH, { method: 'POST', headers: sent, body, tls: TRUST });
        return { status: response.status, headers: response.headers.toJSON(), body: await response.text() };
      },
      async 'HTTP/2'(body: AsyncGenerator<Buffer<ArrayBuffer>>, headers: Record<string, string>) {
        using client = proxy.openClient('127.0.0.2');
        return await client.request('POST', PATH, { cookie: SIGNED_IN, ...headers }, { body });
      },
    };
    const lengthOf = (bytes: number, framing: 'declared' | 'in chunks') =>
      framing === 'declared' ? { 'content-length': String(bytes) } : undefined;

    it.each([
      ['raw', 'declared', 'HTTP/1.1'],
      ['raw', 'in chunks', 'HTTP/2'],
      ['multipart', 'declared', 'HTTP/2'],
      ['multipart', 'in chunks', 'HTTP/1.1'],
    ] as const)(
      'of 200 MB, %s, %s, over %s, arrives byte for byte, and takes the gateway little memory',
      async (kind, framing, protocol) => {
        const { type, content } = KINDS[kind];
        received.length = 0;
        const { rssMb } = await accountOf(gateway.pid);
        await resetPeak(gateway.pid);
        const headers = { 'content-type': type, ...lengthOf(LIMIT_BYTES, framing) };
        const { status } = await upload[protocol](content(LIMIT_BYTES), headers);
        const moreMb = (await accountOf(gateway.pid)).peakMb - rssMb;
        console.log(
          `${name}, ${kind}, ${framing}, ${protocol}: ${Math.round(moreMb)} MB more than ${Math.round(rssMb)}`,
        );
        expect([status, received]).toEqual([201, [await digest(content(LIMIT_BYTES))]]);
        expect(moreMb).toBeLessThan(MOST_MORE_MB);
      },
    );

    it('passes its beginning on before the rest has been sent', async () => {
      arrival = Promise.withResolvers();
      async function* released() {
        yield PIECE;
        await arrival.promise;
        yield* [PIECE, PIECE];
      }
      const headers = lengthOf(3 * PIECE.length, 'declared');
      expect(await upload['HTTP/2'](released(), { ...headers })).toMatchObject({ status: 201 });
    });

    it.each([
      ['declared', 'HTTP/1.1'],
      ['declared', 'HTTP/2'],
      ['in chunks', 'HTTP/1.1'],
      ['in chunks', 'HTTP/2'],
    ] as const)("above the limit, %s, over %s, gets the gateway's own 413", async (framing, protocol) => {
      received.length = 0;
      const bytes = LIMIT_BYTES + 1;
      const { status, headers, body } = await upload[protocol](fileOf(bytes), {
        'content-type': 'audio/wav',
        'accept-language': 'sw',
        ...lengthOf(bytes, framing),
      });
      // nginx and HAProxy speak no Swahili.
      expect([status, JSON.parse(body)]).toEqual([413, { error: { message: messages.sw.uploadTooLarge } }]);
      expect(headers).toMatchObject({ 'access-control-allow-origin': ORIGIN });
      expect(received).toEqual([]);
    });
  });
}
