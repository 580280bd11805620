import { describe, expect, it } from 'bun:test';
import { gzipSync } from 'node:zlib';
import { COSTLY_BODIES } from '../support/costly-bodies.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import { ACCESS_ONLY, envelopeMessage, SIGNED_IN, startWorld, storedTokens } from '../support/world.ts';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

describe('a request body made to cost time', () => {
  it.each(['/api/auth/idp', '/api/music/generate'])(
    'of far too many form fields is refused at %s',
    async (path) => {
      await using world = startWorld();
      const body = Array.from({ length: 300_000 }, (_, index) => index).join('&');
      const response = await world.request(path, { method: 'POST', cookie: SIGNED_IN, headers: FORM, body });
      await envelopeMessage(response, 400);
      expect(world.upstream.received).toEqual([]);
    },
  );

  it.each(COSTLY_BODIES)('of 2 MB is refused and forwards nothing: $kind', async ({ type, bytes }) => {
    await using world = startWorld();
    const body = bytes();
    for (const path of ['/api/auth/idp', '/api/music/generate']) {
      const headers = { 'content-type': type };
      const response = await world.request(path, { method: 'POST', cookie: SIGNED_IN, headers, body });
      await envelopeMessage(response, 400);
    }
    expect(world.upstream.received).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it('of far too many pieces is refused', async () => {
    await using world = startWorld();
    const pieces = (async function* () {
      for (let count = 0; count < 40_000; count++) {
        yield Buffer.from('a');
        if (count % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const sent = world.request('/api/upstream/v1/x', { method: 'POST', cookie: SIGNED_IN, body: pieces });
    // The pieces may be put together on the way, and then the body is an ordinary one.
    world.upstream.on('POST /v1/x', ({ body }) => new Response(String(body.length)));
    const response = await sent;
    if (response.status === 200) expect(await response.text()).toBe('40000');
    else await envelopeMessage(response, 413);
  });

  it('is not read for a generation without a session', async () => {
    await using world = startWorld();
    const response = await world.request('/api/music/generate', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{ malformed',
    });
    await envelopeMessage(response, 401);
  });
});

describe('an upstream answer made to cost memory', () => {
  it.each([
    ['/api/auth/session', 'GET /v1/me'],
    ['/api/music/models', 'GET /v1/models'],
  ])('is refused at %s when it unfolds to more than 8 MiB', async (path, call) => {
    await using world = startWorld();
    const folded = gzipSync(Buffer.alloc(9 * 1024 * 1024));
    world.upstream.on(call, () => new Response(folded, { headers: { 'content-encoding': 'gzip' } }));
    const response = await world.request(path, { cookie: ACCESS_ONLY });
    expect(await envelopeMessage(response, 502)).toContain('invalid');
  });

  it('passes when it is 8 MiB', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/models', () => new Response(Buffer.alloc(8 * 1024 * 1024)));
    const response = await world.request('/api/music/models', { cookie: ACCESS_ONLY });
    expect((await response.arrayBuffer()).byteLength).toBe(8 * 1024 * 1024);
  });
});

describe('a 401 whose connection breaks while the refresh runs', () => {
  it('does not cost the new pair', async () => {
    let calls = 0;
    await using upstream = await startRawUpstream((socket, request) => {
      if (request.startsWith('POST /v1/auth/refresh')) {
        const pair = '{"access_token":"access-2","refresh_token":"refresh-2"}';
        first?.resetAndDestroy();
        setImmediate(() =>
          socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${pair.length}\r\nConnection: close\r\n\r\n${pair}`),
        );
      } else if (calls++ === 0) {
        first = socket;
        socket.write('HTTP/1.1 401 Unauthorized\r\nContent-Length: 100000\r\n\r\npartial');
      } else {
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nright');
      }
    });
    let first: { resetAndDestroy(): unknown } | undefined;
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request('/api/upstream/v1/music/creations', { cookie: SIGNED_IN });
    expect(await response.text()).toBe('right');
    expect(storedTokens(response)).toEqual({ svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' });
  });
});

describe('caches in front of the gateway', () => {
  it('are told not to keep a relayed answer that sets session cookies', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/x', ({ headers }) =>
      headers.get('authorization') === 'Bearer access-2'
        ? new Response('x', { headers: { 'cache-control': 'public, max-age=3600' } })
        : new Response('', { status: 401 }),
    );
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
    );
    const renewed = await world.request('/api/upstream/v1/x', { cookie: SIGNED_IN });
    expect(renewed.headers.get('cache-control')).toBe('no-store');
    const later = await world.request('/api/upstream/v1/x', { cookie: 'svc_music_access=access-2' });
    expect(later.headers.get('cache-control')).toBe('public, max-age=3600');
    expect(later.headers.get('vary')).toBe('Origin, Cookie');
  });

  it('may keep public playback for everybody', async () => {
    await using world = startWorld();
    world.upstream.on(
      'GET /v1/music/public/1',
      () => new Response('x', { headers: { 'cache-control': 'max-age=60' } }),
    );
    const response = await world.request('/api/upstream/v1/music/public/1', { cookie: SIGNED_IN });
    expect(response.headers.get('cache-control')).toBe('max-age=60');
    expect(response.headers.get('vary')).toBe('Origin');
  });
});
