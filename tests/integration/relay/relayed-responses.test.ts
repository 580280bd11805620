import { describe, expect, it } from 'bun:test';
import { brotliCompressSync, deflateSync } from 'node:zlib';
import { messages } from '../../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { BUFFERED, PROXIED_PATH, PUBLIC, proxied } from '../../support/routes.ts';
import { pair, REFRESH } from '../../support/session-calls.ts';
import { rawCall, startRawWorld } from '../../support/shared-world.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  storedTokens,
} from '../../support/world.ts';

const UNREADABLE = 'music-gateway; error=http_response_content_coding';
const MiB = 1024 * 1024;
const JSON_BYTES = Buffer.from('{"a":1}');
/** Every byte there is, more than once. */
const ALL_BYTES = Uint8Array.from({ length: 1024 }, (_, index) => index % 256);
const NEW_TOKENS = { svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' };
/** They pass on every route. */
const KEPT = {
  'content-type': 'text/html; charset=iso-8859-1',
  'retry-after': '17',
  'x-ratelimit-used': '9',
};

/** What the upstream says of its body, in bytes that Bun does not touch. */
function encodedBody(coding: string, body: Uint8Array): Buffer {
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nContent-Encoding: ${coding}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

describe.each([...BUFFERED, proxied('GET'), PUBLIC])(
  'the response of $name',
  ({ name, path, options, calls }) => {
    const isBuffered = BUFFERED.some((route) => route.name === name);
    const call = calls.join();

    it.each([
      ...[
        200, 201, 203, 204, 205, 226, 300, 302, 304, 305, 400, 401, 402, 403, 404, 405, 409, 413, 416, 418,
        429,
      ],
      ...[499, 500, 503, 511, 599],
    ])('keeps the status %i, its bytes, its type and its limits, and is not tried again', async (status) => {
      await using world = startWorld();
      // A session check gives a 404 another meaning.
      if (status === 404 && name === 'session check') return;
      const bytes = Buffer.from([204, 205, 304].includes(status) ? '' : '<script>caf\xe9</script>', 'latin1');
      const passes = { etag: '"1"', 'cache-control': 'public', location: 'https://cdn.test/' };
      const dropped = {
        'set-cookie': 'upstream=1',
        'content-security-policy': 'default-src *',
        'x-upstream': '7',
      };
      const headers = { ...KEPT, ...passes, ...dropped };
      world.upstream.on(call, () => new Response(bytes.length ? bytes : null, { status, headers }));
      const response = await world.request(path, options);
      expect(response.status).toBe(status);
      expect(Buffer.from(await response.bytes()).equals(bytes)).toBe(true);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        ...KEPT,
        ...(isBuffered ? { 'cache-control': 'no-store' } : passes),
        'content-security-policy': "sandbox; default-src 'none'",
      });
      expect(response.headers.get('access-control-expose-headers')).toContain('x-ratelimit-used');
      const foreign = ['set-cookie', 'x-upstream', ...(isBuffered ? ['etag', 'location'] : [])];
      expect(foreign.filter((each) => response.headers.has(each))).toEqual([]);
      expect(world.upstream.calls).toEqual([call]);
      expect(world.log).toHaveLength(status >= 500 ? 1 : 0);
    });

    // Bun gives a type to each body of known length and to each string.
    it.each([
      ['in one write', 0, ACCESS_ONLY],
      ['in chunks', 200_000, ACCESS_ONLY],
      ['with new cookies', 0, REFRESH_ONLY],
    ])('has no Content-Type that the gateway has made up, when it is sent %s', async (_, bytes, cookie) => {
      // The refresh gets it as well.
      const body = JSON.stringify(pair(2)).padEnd(bytes);
      await using raw = await startRawWorld(
        `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      const response = await rawCall(raw, `GET ${path}`, { cookie });
      expect([response.status, response.headers.get('content-type')]).toEqual([200, null]);
      expect(response.body).toContain('access-2');
    });
  },
);

describe.each(BUFFERED)('the encoded response of $name', ({ path, options, calls }) => {
  it.each([
    // The bodies are not encoded, although the header says so; Bun does not decode the last ones.
    ...['gzip', 'x-gzip', 'GZIP', 'deflate', 'br', 'zstd', 'compress', 'aes128gcm', 'gzip, br', 'x'],
  ])('is a 502 when its encoding %s cannot be decoded', async (coding) => {
    await using raw = await startRawWorld(encodedBody(coding, JSON_BYTES));
    const response = await raw.request(path, options);
    expect(response.headers.get('proxy-status')).toBe(UNREADABLE);
    expect(await envelopeMessage(response, 502)).toBe(messages.en.upstreamInvalid);
    expect(raw.connections()).toBe(1);
  });

  it.each([
    ['X-GZIP', Bun.gzipSync(JSON_BYTES)],
    ['deflate', deflateSync(JSON_BYTES)],
    ['br', brotliCompressSync(JSON_BYTES)],
    ['zstd', Bun.zstdCompressSync(JSON_BYTES)],
    ['identity', JSON_BYTES],
  ])('is decoded when it is encoded as %s', async (coding, encoded) => {
    await using raw = await startRawWorld(encodedBody(coding, encoded));
    const response = await raw.request(path, options);
    expect([response.status, await response.text()]).toEqual([200, '{"a":1}']);
    expect(response.headers.has('content-encoding')).toBe(false);
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

it.each([proxied('GET'), PUBLIC])(
  'the response of $name has the very same bytes, however encoded',
  async (route) => {
    await using world = startWorld();
    for (const coding of ['identity', 'gzip', 'an-encoding-of-its-own']) {
      const bytes = coding === 'gzip' ? Uint8Array.from(Bun.gzipSync(ALL_BYTES)) : ALL_BYTES;
      world.upstream.on(
        route.calls.join(),
        () => new Response(bytes, { headers: { 'content-encoding': coding } }),
      );
      const response = await world.request(route.path, { ...route.options, decompress: false });
      expect(response.headers.get('content-encoding')).toBe(coding);
      expect(await response.bytes()).toEqual(bytes);
    }
  },
);

// Which calls are refreshed and repeated: session/refresh.test.ts.
describe('a response with renewed cookies', () => {
  it('is not kept by a cache, unlike the next one', async () => {
    await using world = startWorld();
    const headers = { 'cache-control': 'public, max-age=3600', vary: 'Accept', 'x-ratelimit-used': '3' };
    world.upstream
      .on(REFRESH, () => Response.json(pair(2)))
      .on('GET /v1/library', () => new Response('x', { headers }));
    const renewed = await world.request(PROXIED_PATH, { cookie: REFRESH_ONLY });
    const later = await world.request(PROXIED_PATH, { cookie: ACCESS_ONLY });
    expect(storedTokens(renewed)).toEqual(NEW_TOKENS);
    expect([renewed, later].map((each) => each.headers.get('cache-control'))).toEqual([
      'no-store',
      'public, max-age=3600',
    ]);
    for (const response of [renewed, later]) {
      expect(response.headers.get('vary')).toBe('Origin, Cookie, Accept');
      expect(response.headers.get('access-control-expose-headers')).toContain('x-ratelimit-used');
    }
  });

  it('does not lose them when the connection of the 401 breaks during the refresh', async () => {
    let first: { resetAndDestroy(): unknown } | undefined;
    await using upstream = await startRawUpstream((socket, request) => {
      const send = (body: string) =>
        socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
      if (request.startsWith(REFRESH)) {
        first?.resetAndDestroy();
        setImmediate(() => send(JSON.stringify(pair(2))));
      } else if (first) send('right');
      else {
        first = socket;
        socket.write('HTTP/1.1 401 Unauthorized\r\nContent-Length: 100000\r\n\r\npartial');
      }
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request(PROXIED_PATH, { cookie: SIGNED_IN });
    expect(await response.text()).toBe('right');
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
  });
});

it('a response whose session has a newer pair that no cookie can carry is given up at the upstream', async () => {
  await using world = startWorld();
  const pairs = [pair(2), { access_token: 'access-3', refresh_token: 'r'.repeat(4096) }];
  const released = Promise.withResolvers<void>();
  const cancelled = Promise.withResolvers<void>();
  const start = (controller: ReadableStreamDefaultController) => controller.enqueue('wait');
  const endless = () => new Response(new ReadableStream({ start, cancel: () => cancelled.resolve() }));
  world.upstream
    .on(REFRESH, () => Response.json(pairs.shift()))
    .on('GET /v1/me', () => new Response('', { status: 401 }))
    .on('GET /v1/library', ({ headers }) =>
      headers.get('authorization') === 'Bearer access-1'
        ? new Response('', { status: 401 })
        : released.promise.then(endless),
    );
  const slow = world.request(PROXIED_PATH, { cookie: SIGNED_IN });
  await world.upstream.arrived('GET /v1/library', 2);
  await world.request('/api/auth/session', { cookie: 'svc_music_refresh=refresh-2' });
  released.resolve();
  expect((await slow).status).toBe(502);
  await cancelled.promise;
});
