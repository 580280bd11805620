import { describe, expect, it } from 'bun:test';
import { brotliCompressSync, deflateSync } from 'node:zlib';
import { messages } from '../../src/gateway/http/messages.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { ACCESS_ONLY, envelopeMessage, SIGNED_IN, startWorld } from '../support/world.ts';

const MODELS = 'GET /v1/models';

describe('GET /api/music/models', () => {
  it('asks the upstream with the access token, and with nothing of the browser', async () => {
    await using world = startWorld();
    world.upstream.on(MODELS, () => Response.json({ data: [] }));
    const response = await world.request('/api/music/models?limit=1', {
      cookie: `${SIGNED_IN}; theme=dark`,
      headers: { accept: 'text/html', authorization: 'Bearer from-the-browser' },
    });
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual([MODELS]);
    const { headers, body } = world.upstream.last(MODELS);
    expect(headers.get('authorization')).toBe('Bearer access-1');
    expect(headers.get('accept')).toBe('application/json');
    expect(headers.get('cookie')).toBeNull();
    expect(headers.get('origin')).toBeNull();
    expect(body).toBe('');
  });

  it('answers with the text and content type of the catalogue, and nothing else of the answer', async () => {
    const catalogue = ' {"data":[ {"id":"music-1","price":0.10} ]}\n';
    await using world = startWorld();
    world.upstream.on(
      MODELS,
      () =>
        new Response(catalogue, {
          headers: {
            'content-type': 'application/vnd.models+json; charset=utf-8',
            'cache-control': 'public, max-age=60',
            'set-cookie': 'upstream=1',
            'x-upstream': 'node-7',
          },
        }),
    );
    const response = await world.request('/api/music/models', { cookie: ACCESS_ONLY });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(catalogue);
    expect(response.headers.get('content-type')).toBe('application/vnd.models+json; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get('x-upstream')).toBeNull();
  });

  it('passes on bytes in any character encoding', async () => {
    const bytes = Buffer.from('caf\xe9', 'latin1');
    await using world = startWorld();
    const headers = { 'content-type': 'text/plain; charset=iso-8859-1' };
    world.upstream.on(MODELS, () => new Response(bytes, { headers }));
    const response = await world.request('/api/music/models', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/plain; charset=iso-8859-1');
    expect(Buffer.from(await response.bytes()).equals(bytes)).toBe(true);
  });

  it('decodes a compressed catalogue', async () => {
    await using world = startWorld();
    world.upstream.on(
      MODELS,
      () =>
        new Response(Bun.gzipSync(Buffer.from('{"data":[]}')), {
          headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        }),
    );
    const response = await world.request('/api/music/models', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-encoding')).toBeNull();
    expect(await response.text()).toBe('{"data":[]}');
  });

  it.each([203, 302, 400, 403, 404, 429, 500, 502, 503])(
    'passes on status %i with text and content type, and does not try again',
    async (status) => {
      await using world = startWorld();
      world.upstream.on(
        MODELS,
        () => new Response(`upstream says ${status}`, { status, headers: { 'content-type': 'text/x-odd' } }),
      );
      const response = await world.request('/api/music/models', { cookie: SIGNED_IN });
      expect(response.status).toBe(status);
      expect(await response.text()).toBe(`upstream says ${status}`);
      expect(response.headers.get('content-type')).toBe('text/x-odd');
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(world.upstream.calls).toEqual([MODELS]);
    },
  );

  it.each([
    ['no cookie', undefined],
    ['empty session cookies', 'svc_music_access=; svc_music_refresh='],
    ['an unusable access cookie', 'svc_music_access=a%20b'],
  ])('answers 401 to a request with %s', async (_, cookie) => {
    await using world = startWorld();
    const response = await world.request('/api/music/models', cookie === undefined ? {} : { cookie });
    expect(await envelopeMessage(response, 401)).toBe(messages.notSignedIn.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it.each([
    ['missing', null],
    ['not allowed', 'https://elsewhere.test'],
  ])('answers 403 when the Origin is %s', async (_, origin) => {
    await using world = startWorld();
    const response = await world.request('/api/music/models', { origin, cookie: SIGNED_IN });
    expect(await envelopeMessage(response, 403)).toBe(messages.originNotAllowed.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it('answers 403 rather than 401 when both would do', async () => {
    await using world = startWorld();
    const response = await world.request('/api/music/models', { origin: null });
    expect(await envelopeMessage(response, 403)).toBe(messages.originNotAllowed.en);
  });
});

/** Session check passes on a profile in the same way. */
const PASSED_ON = [
  ['/api/music/models', MODELS],
  ['/api/auth/session', 'GET /v1/me'],
] as const;

describe.each(PASSED_ON)('GET %s passing on', (path, call) => {
  /** What the upstream says of the body, as text that Bun does not touch. */
  function startUpstream(head: string, body: string | Uint8Array) {
    return startRawUpstream((socket) => {
      const size = Buffer.byteLength(body);
      socket.end(
        Buffer.concat([
          Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n${head}\r\n`),
          Buffer.from(body),
        ]),
      );
    });
  }

  it.each([200, 429, 503])('passes on Retry-After and the rate limits with a %i', async (status) => {
    const limits = { 'retry-after': '17', ratelimit: '"default";r=0;t=17', 'x-ratelimit-used': '9' };
    await using world = startWorld();
    world.upstream.on(call, () => Response.json({}, { status, headers: { ...limits, etag: '"1"' } }));
    const response = await world.request(path, { cookie: ACCESS_ONLY });
    expect(response.status).toBe(status);
    expect(Object.fromEntries(response.headers)).toMatchObject(limits);
    expect(response.headers.get('access-control-expose-headers')).toContain('x-ratelimit-used');
    expect(response.headers.has('etag')).toBe(false);
    expect(await response.json()).toEqual({});
    expect(world.upstream.calls).toEqual([call]);
  });

  it.each([200, 500])('keeps the body of a %i from running on the origin of the cookies', async (status) => {
    await using world = startWorld();
    const headers = { 'content-type': 'text/html' };
    world.upstream.on(call, () => new Response('<script>alert(1)</script>', { status, headers }));
    const response = await world.request(path, { cookie: ACCESS_ONLY });
    expect(response.status).toBe(status);
    expect(response.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
    expect(await response.text()).toBe('<script>alert(1)</script>');
    expect(world.upstream.calls).toEqual([call]);
  });

  it.each(['gzip', 'x-gzip', 'GZIP', 'deflate', 'br', 'zstd'])(
    'makes a 502 of a body that is not %s, although it says so',
    async (coding) => {
      await using upstream = await startUpstream(`Content-Encoding: ${coding}\r\n`, 'no such encoding');
      await using world = startWorld({ UPSTREAM_URL: upstream.url });
      const response = await world.request(path, { cookie: ACCESS_ONLY });
      const error = 'music-gateway; error=http_response_content_coding';
      expect(response.headers.get('proxy-status')).toBe(error);
      expect(await envelopeMessage(response, 502)).toBe(messages.upstreamInvalid.en);
      expect(upstream.connections).toBe(1);
    },
  );

  it.each(['compress', 'aes128gcm', 'gzip, br', 'x'])(
    'makes a 502 of a body encoded as %s, which Bun does not decode',
    async (coding) => {
      await using upstream = await startUpstream(`Content-Encoding: ${coding}\r\n`, '{}');
      await using world = startWorld({ UPSTREAM_URL: upstream.url });
      const response = await world.request(path, { cookie: ACCESS_ONLY });
      const error = 'music-gateway; error=http_response_content_coding';
      expect(response.headers.get('proxy-status')).toBe(error);
      expect(await envelopeMessage(response, 502)).toBe(messages.upstreamInvalid.en);
      expect(upstream.connections).toBe(1);
    },
  );

  it.each([
    ['gzip', Bun.gzipSync('{"a":1}')],
    ['X-GZIP', Bun.gzipSync('{"a":1}')],
    ['deflate', deflateSync('{"a":1}')],
    ['br', brotliCompressSync('{"a":1}')],
    ['zstd', Bun.zstdCompressSync('{"a":1}')],
    ['identity', Buffer.from('{"a":1}')],
  ])('decodes %s', async (coding, encoded) => {
    await using upstream = await startUpstream(`Content-Encoding: ${coding}\r\n`, encoded);
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request(path, { cookie: ACCESS_ONLY });
    expect(response.status).toBe(200);
    expect(response.headers.has('content-encoding')).toBe(false);
    expect(await response.text()).toBe('{"a":1}');
    expect(upstream.connections).toBe(1);
  });
});

describe('GET /api/music/models when the upstream is away', () => {
  it('answers 502 when it cannot be reached', async () => {
    await using world = startWorld({ UPSTREAM_URL: 'http://127.0.0.1:1' });
    const response = await world.request('/api/music/models', { cookie: SIGNED_IN });
    const message = await envelopeMessage(response, 502);
    expect(message).toBe(messages.upstreamUnreachable.en);
    expect(message).not.toContain('127.0.0.1');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.log).toHaveLength(1);
    expect(world.log.join()).not.toMatch(/access-1|refresh-1/);
  });

  it('answers 502 when it does not answer in time', async () => {
    await using world = startWorld({ TIMEOUT_READ_MS: '50' });
    const never = Promise.withResolvers<Response>();
    world.upstream.on(MODELS, () => never.promise);
    const response = await world.request('/api/music/models', { cookie: SIGNED_IN });
    expect(await envelopeMessage(response, 502)).toBe(messages.upstreamTimeout.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([MODELS]);
    never.resolve(new Response());
  });
});
