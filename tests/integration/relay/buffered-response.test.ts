import { describe, expect, it } from 'bun:test';
import { brotliCompressSync, deflateSync } from 'node:zlib';
import { messages } from '../../../src/gateway/http/messages.ts';
import { BUFFERED } from '../../support/routes.ts';
import { sharedWorld, startRawWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY, envelopeMessage, SIGNED_IN } from '../../support/world.ts';

const UNREADABLE = 'music-gateway; error=http_response_content_coding';
const MiB = 1024 * 1024;

/** What the upstream says of its body, in bytes that Bun does not touch. */
function encodedBody(coding: string, body: string | Uint8Array): Buffer {
  const size = Buffer.byteLength(body);
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\nContent-Encoding: ${coding}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(body)]);
}

describe.each(BUFFERED)('the response of $name', ({ path, options, calls }) => {
  const call = calls.join();
  const world = sharedWorld();

  it('is asked for with the access token, and with nothing of the browser', async () => {
    world.upstream.on(call, () => Response.json({}));
    const headers = { accept: 'text/html', authorization: 'Bearer from-the-browser' };
    await world.request(`${path}?limit=1`, { cookie: `${SIGNED_IN}; theme=dark`, headers });
    const sent = world.upstream.last(call);
    expect(world.upstream.calls).toEqual([call]);
    expect(sent.body).toBe('');
    expect(sent.headers.get('authorization')).toBe('Bearer access-1');
    expect(sent.headers.get('accept')).toBe('application/json');
    for (const name of ['cookie', 'origin']) expect(sent.headers.has(name)).toBe(false);
  });

  it('has no limits that the upstream’s Connection names', async () => {
    const head = 'HTTP/1.1 200 OK\r\nConnection: close, X-RateLimit-Used\r\nX-RateLimit-Used: 3';
    const lines = 'X-RateLimit-Limit: 10\r\nContent-Length: 2';
    await using raw = await startRawWorld(`${head}\r\n${lines}\r\n\r\n{}`);
    const { headers } = await raw.request(path, options);
    expect(headers.get('x-ratelimit-limit')).toBe('10');
    expect(headers.has('x-ratelimit-used')).toBe(false);
    expect(headers.get('access-control-expose-headers')).not.toContain('x-ratelimit-used');
  });

  // A session check gives a 404 another meaning.
  it.each([200, 203, 204, 302, 400, 403, ...(path === '/api/music/models' ? [404] : []), 409, 429, 500, 503])(
    'keeps the status %i, its bytes, its type and its limits, and no other header, and is not tried again',
    async (status) => {
      const bytes = Buffer.from(status === 204 ? '' : '<script>caf\xe9</script>', 'latin1');
      const kept = {
        'content-type': 'text/html; charset=iso-8859-1',
        'retry-after': '17',
        ratelimit: '"default";r=0;t=17',
        'x-ratelimit-used': '9',
      };
      const dropped = { etag: '"1"', 'set-cookie': 'upstream=1', 'x-upstream': 'node-7', location: '/x' };
      const replaced = { 'cache-control': 'public, max-age=60', 'content-security-policy': 'default-src *' };
      const headers = { ...kept, ...dropped, ...replaced };
      world.upstream.on(call, () => new Response(status === 204 ? null : bytes, { status, headers }));
      const response = await world.request(path, options);
      expect(response.status).toBe(status);
      expect(Buffer.from(await response.bytes()).equals(bytes)).toBe(true);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        ...kept,
        'cache-control': 'no-store',
        'content-security-policy': "sandbox; default-src 'none'",
        'x-content-type-options': 'nosniff',
      });
      expect(response.headers.get('access-control-expose-headers')).toContain('x-ratelimit-used');
      for (const name of Object.keys(dropped)) expect(response.headers.has(name)).toBe(false);
      expect(world.upstream.calls).toEqual([call]);
    },
  );

  it('is a 502 when its body breaks off', async () => {
    await using raw = await startRawWorld('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"name":');
    const response = await raw.request(path, options);
    expect(await envelopeMessage(response, 502)).toBe(messages.en.upstreamUnreachable);
    expect(raw.log).toHaveLength(1);
  });

  it.each([
    // The bodies are not encoded, although the header says so.
    ...['gzip', 'x-gzip', 'GZIP', 'deflate', 'br', 'zstd'],
    // Bun does not decode these.
    ...['compress', 'aes128gcm', 'gzip, br', 'x'],
  ])('is a 502 when its encoding %s cannot be decoded', async (coding) => {
    await using raw = await startRawWorld(encodedBody(coding, '{}'));
    const response = await raw.request(path, { cookie: ACCESS_ONLY });
    expect(response.headers.get('proxy-status')).toBe(UNREADABLE);
    expect(await envelopeMessage(response, 502)).toBe(messages.en.upstreamInvalid);
    expect(raw.connections()).toBe(1);
  });

  it.each([
    ['gzip', Bun.gzipSync('{"a":1}')],
    ['X-GZIP', Bun.gzipSync('{"a":1}')],
    ['deflate', deflateSync('{"a":1}')],
    ['br', brotliCompressSync('{"a":1}')],
    ['zstd', Bun.zstdCompressSync('{"a":1}')],
    ['identity', Buffer.from('{"a":1}')],
  ])('is decoded when it is encoded as %s', async (coding, encoded) => {
    await using raw = await startRawWorld(encodedBody(coding, encoded));
    const response = await raw.request(path, { cookie: ACCESS_ONLY });
    expect(response.status).toBe(200);
    expect(response.headers.has('content-encoding')).toBe(false);
    expect(await response.text()).toBe('{"a":1}');
    expect(raw.connections()).toBe(1);
  });

  it('may decode to 8 MiB, and is a 502 when it decodes to more', async () => {
    const headers = { 'content-encoding': 'gzip' };
    world.upstream.on(call, () => new Response(Bun.gzipSync(Buffer.alloc(8 * MiB)), { headers }));
    const largest = await world.request(path, options);
    expect((await largest.arrayBuffer()).byteLength).toBe(8 * MiB);
    world.upstream.on(call, () => new Response(Bun.gzipSync(Buffer.alloc(8 * MiB + 1)), { headers }));
    const larger = await world.request(path, options);
    expect(await envelopeMessage(larger, 502)).toBe(messages.en.upstreamInvalid);
  });
});
