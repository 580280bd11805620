import { describe, expect, it } from 'bun:test';
import { brotliCompressSync } from 'node:zlib';
import { messages } from '../../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { BUFFERED, PUBLIC, proxied } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, ORIGIN, SIGNED_IN, startWorld } from '../../support/world.ts';

const MiB = 1024 * 1024;
const TEXT = Buffer.from('<script>caf\xe9</script>', 'latin1');
const STATUSES = `200 201 203 204 205 226 300 302 304 400 401 402 403 404 405 413 416 429 499 500 503 599`;
/** What the upstream sends, by where it passes: on every route, only with a streamed body, nowhere. */
const KEPT = {
  'content-type': 'text/html; charset=iso-8859-1',
  'retry-after': '17',
  'x-ratelimit-used': '9',
};
const STREAMED = { etag: '"1"', 'cache-control': 'public', location: 'https://cdn.test/' };
const DROPPED = { 'set-cookie': 'a=b', 'x-upstream': '7', 'server-timing': 'refresh' };
/** The gateway's own would lose their effect. */
const REPLACED = {
  'access-control-allow-origin': '*',
  'content-security-policy': 'default-src *',
  'x-content-type-options': 'off',
  vary: 'Accept',
};

const routes = [
  ...BUFFERED.map((route) => ({ ...route, isBuffered: true })),
  ...[proxied('GET'), PUBLIC].map((route) => ({ ...route, isBuffered: false })),
];
describe.each(routes)('the response of $name', ({ name, path, options, calls, isBuffered }) => {
  const world = sharedWorld();
  // A session check gives a 404 another meaning.
  const statuses = STATUSES.split(' ').filter((status) => status !== '404' || name !== 'session check');

  it.each(statuses.map(Number))(
    'keeps a %i with its bytes, and is neither refreshed nor tried again',
    async (status) => {
      const encoding = isBuffered ? {} : { 'content-encoding': 'gzip' };
      const bytes = isBuffered ? TEXT : Buffer.from(Bun.gzipSync(TEXT));
      const body = [204, 205, 304].includes(status) ? null : bytes;
      const challenge = status === 401 ? { 'www-authenticate': 'Bearer error="insufficient_scope"' } : {};
      const headers = { ...KEPT, ...STREAMED, ...DROPPED, ...REPLACED, ...encoding, ...challenge };
      world.upstream.on(calls.join(), () => new Response(body, { status, headers }));
      const response = await world.request(path, { ...options, cookie: SIGNED_IN, decompress: false });
      expect(response.status).toBe(status);
      expect(Buffer.from(await response.bytes()).toString('hex')).toBe(body?.toString('hex') ?? '');
      expect(Object.fromEntries(response.headers)).toMatchObject({
        ...KEPT,
        ...challenge,
        ...(isBuffered ? { 'cache-control': 'no-store' } : { ...STREAMED, ...encoding }),
        'access-control-allow-origin': ORIGIN,
        'content-security-policy': "sandbox; default-src 'none'",
        'x-content-type-options': 'nosniff',
        vary: expect.stringMatching(/^Origin\b/),
        'access-control-expose-headers': expect.stringContaining('x-ratelimit-used'),
      });
      const foreign = [...Object.keys(DROPPED), ...(isBuffered ? ['etag', 'location'] : [])];
      expect(foreign.filter((each) => response.headers.has(each))).toEqual([]);
      expect([world.upstream.calls, world.log.length]).toEqual([[...calls], Number(status >= 500)]);
    },
  );
});

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
    const sent = Buffer.concat([Buffer.from(head), body]);
    await using upstream = await startRawUpstream((socket) => socket.end(sent));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request(path, options);
    expect([upstream.connections(), response.headers.has('content-encoding')]).toEqual([1, false]);
    if (isDecoded) return expect(Buffer.from(await response.bytes()).equals(TEXT)).toBe(true);
    const error = 'music-gateway; error=http_response_content_coding';
    expect(response.headers.get('proxy-status')).toBe(error);
    expect(await envelopeMessage(response, 502)).toBe(messages.en.upstreamInvalid);
  });

  it('may decode to 8 MiB, and is a 502 when it decodes to more', async () => {
    await using world = startWorld();
    const headers = { 'content-encoding': 'gzip' };
    let body = Buffer.alloc(8 * MiB);
    world.upstream.on(calls.join(), () => new Response(Bun.gzipSync(body), { headers }));
    expect((await (await world.request(path, options)).bytes()).length).toBe(8 * MiB);
    body = Buffer.alloc(8 * MiB + 1);
    expect(await envelopeMessage(await world.request(path, options), 502)).toBe(messages.en.upstreamInvalid);
  });
});
