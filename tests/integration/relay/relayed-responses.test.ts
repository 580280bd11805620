import { describe, expect, it } from 'bun:test';
import { brotliCompressSync } from 'node:zlib';
import { messages } from '../../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { BUFFERED, PUBLIC, proxied } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, SIGNED_IN, startWorld } from '../../support/world.ts';

const MiB = 1024 * 1024;
const TEXT = Buffer.from('<script>caf\xe9</script>', 'latin1');
const STATUSES = `200 201 203 204 205 226 300 302 304 400 401 402 403 404 405 413 416 429 499 500 503 599`;
const CHALLENGE = 'Bearer error="insufficient_scope"';
const CASES = [...BUFFERED, proxied('GET'), PUBLIC].flatMap((route) =>
  STATUSES.split(' ').map((status) => ({ ...route, status: Number(status) })),
);

const world = sharedWorld();

// With which headers: forwarded-headers.test.ts. A session check gives a 404 another meaning.
it.each(CASES.filter(({ name, status }) => name !== 'session check' || status !== 404))(
  'the response of $name keeps a $status with its bytes, and is neither refreshed nor tried again',
  async ({ path, options, calls, status }) => {
    const body = [204, 205, 304].includes(status) ? null : TEXT;
    const headers: Record<string, string> = status === 401 ? { 'www-authenticate': CHALLENGE } : {};
    world.upstream.on(calls.join(), () => new Response(body, { status, headers }));
    const response = await world.request(path, { ...options, cookie: SIGNED_IN });
    expect(response.status).toBe(status);
    expect(Buffer.from(await response.bytes()).toString('hex')).toBe(body?.toString('hex') ?? '');
    expect(response.headers.get('www-authenticate')).toBe(status === 401 ? CHALLENGE : null);
    expect([world.upstream.calls, world.log.length]).toEqual([[...calls], Number(status >= 500)]);
  },
);

describe.each(BUFFERED)('the encoded response of $name', ({ path, options, calls }) => {
  it.each<[coding: string, body: Uint8Array, isDecoded: boolean]>([
    ['X-GZIP', Bun.gzipSync(TEXT), true],
    ['br', brotliCompressSync(TEXT), true],
    ['identity', TEXT, true],
    ['gzip', TEXT, false],
    ['br', TEXT, false],
    // Bun does not decode the last ones.
    ['gzip, br', TEXT, false],
    ['x', TEXT, false],
  ])('in %s is decoded, or is a 502', async (coding, body, isDecoded) => {
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nContent-Encoding: ${coding}\r\n\r\n`;
    const bytes = Buffer.concat([Buffer.from(head), body]);
    await using upstream = await startRawUpstream((socket) => socket.end(bytes));
    await using own = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await own.request(path, options);
    expect([upstream.connections(), response.headers.has('content-encoding')]).toEqual([1, false]);
    if (isDecoded) return expect(Buffer.from(await response.bytes()).equals(TEXT)).toBe(true);
    const error = 'music-gateway; error=http_response_content_coding';
    expect(response.headers.get('proxy-status')).toBe(error);
    expect(await envelopeMessage(response, 502)).toBe(messages.en.upstreamInvalid);
  });

  it('may decode to 8 MiB, and is a 502 when it decodes to more', async () => {
    const headers = { 'content-encoding': 'gzip' };
    let body = Buffer.alloc(8 * MiB);
    world.upstream.on(calls.join(), () => new Response(Bun.gzipSync(body), { headers }));
    expect((await (await world.request(path, options)).bytes()).length).toBe(8 * MiB);
    body = Buffer.alloc(8 * MiB + 1);
    expect(await envelopeMessage(await world.request(path, options), 502)).toBe(messages.en.upstreamInvalid);
  });
});
