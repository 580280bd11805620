import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { PROXIED_PATH, PUBLIC, proxied } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY, ORIGIN, startWorld } from '../../support/world.ts';

/** Every byte there is, more than once. */
const ALL_BYTES = Uint8Array.from({ length: 1024 }, (_, index) => index % 256);

const world = sharedWorld();

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return world.request(`/api/upstream${path}`, { cookie: ACCESS_ONLY, headers, decompress: false });
}

// The methods that are forwarded: every-route.test.ts.
describe('another method of a proxied request', () => {
  it.each(['TRACE', 'CONNECT', 'PROPFIND', 'QUERY', 'PURGE'])('is refused: %s', async (method) => {
    const response = await rawCall(world, `${method} ${PROXIED_PATH}`);
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, HEAD, POST, PUT, PATCH, DELETE');
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(JSON.parse(response.body)).toEqual({ error: { message: messages.en.methodNotAllowed } });
    expect(world.upstream.calls).toEqual([]);
  });
});

describe.each([proxied('GET'), PUBLIC])('a response for $name', ({ path, options, calls }) => {
  it.each([
    ...[200, 201, 203, 226, 300, 305, 400, 401, 402, 404, 405, 413, 416, 418, 429, 499, 500, 503, 511, 599],
  ])('keeps the status %d and its body, without an envelope or a second call', async (status) => {
    await using own = startWorld();
    const headers = { 'content-type': 'text/html', allow: 'GET, OPTIONS, QUERY', 'retry-after': '7' };
    own.upstream.on(calls.join(), () => new Response(`<b>${status}</b>`, { status, headers }));
    const response = await own.request(path, options);
    expect(response.status).toBe(status);
    expect(Object.fromEntries(response.headers)).toMatchObject(headers);
    expect(response.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(await response.text()).toBe(`<b>${status}</b>`);
    expect(own.upstream.calls).toEqual([...calls]);
    expect(own.log).toHaveLength(status >= 500 ? 1 : 0);
  });
});

describe('a proxied response', () => {
  it.each([204, 205, 304])('passes as a %d without a body', async (status) => {
    world.upstream.on('GET /v1/any', () => new Response(null, { status, headers: { etag: '"abc"' } }));
    const response = await get('/v1/any', { 'if-none-match': '"abc"' });
    expect(response.status).toBe(status);
    expect(response.headers.get('etag')).toBe('"abc"');
    expect(await response.text()).toBe('');
    expect(world.upstream.last('GET /v1/any').headers.get('if-none-match')).toBe('"abc"');
  });

  it('passes as a 206 with its Content-Range', async () => {
    world.upstream.on('GET /v1/track', ({ headers }) => {
      const contentRange = headers.get('range') === 'bytes=2-5' ? 'bytes 2-5/10' : 'bytes */10';
      return new Response('cdef', { status: 206, headers: { 'content-range': contentRange } });
    });
    const response = await get('/v1/track', { range: 'bytes=2-5' });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe('bytes 2-5/10');
    expect(await response.text()).toBe('cdef');
  });

  it.each([
    ['identity', ALL_BYTES],
    ['gzip', Bun.gzipSync(ALL_BYTES)],
    ['deflate', Bun.deflateSync(ALL_BYTES)],
    ['an-encoding-of-its-own', ALL_BYTES],
  ])('encoded as %s has the very same bytes', async (coding, bytes) => {
    const headers = { 'content-encoding': coding, vary: 'Accept-Encoding' };
    world.upstream.on('GET /v1/track', () => new Response(bytes, { headers }));
    const response = await get('/v1/track', { 'accept-encoding': 'gzip' });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-encoding': coding,
      vary: 'Origin, Cookie, Accept-Encoding',
    });
    expect(await response.bytes()).toEqual(Uint8Array.from(bytes));
    expect(world.upstream.last('GET /v1/track').headers.get('accept-encoding')).toBe('gzip');
  });
});
