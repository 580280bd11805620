import { describe, expect, it } from 'bun:test';
import { type RawAnswer, rawRequest } from '../support/raw-http.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  ORIGIN,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  storedTokens,
  type World,
} from '../support/world.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const METHODS_WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE'];
/** Every byte there is, more than once. */
const ALL_BYTES = Uint8Array.from({ length: 1024 }, (_, index) => index % 256);

async function* allBytesInChunks(): AsyncGenerator<Uint8Array> {
  yield ALL_BYTES.subarray(0, 100);
  yield ALL_BYTES.subarray(100);
}

/** The headers that a script may read, in lower case. */
function exposed({ headers }: Response): string[] {
  return (headers.get('access-control-expose-headers') ?? '').toLowerCase().split(', ');
}

/** A request by raw socket, with whatever header lines a client could think of. */
function rawCall(world: World, method: string, path: string, ...headerLines: string[]): Promise<RawAnswer> {
  const head = [
    `${method} /api/upstream${path} HTTP/1.1`,
    'Host: gateway.test',
    `Origin: ${ORIGIN}`,
    `Cookie: ${SIGNED_IN}`,
    'Connection: close',
    ...headerLines,
  ];
  return rawRequest(world.port, `${head.join('\r\n')}\r\n\r\n`);
}

describe('the proxy', () => {
  it.each([
    '/v1/',
    '/v1/library',
    '/v1/music/creations/0b5e.A-z_~9/content',
    '/v1/library?page=2&sort=-date&tag=a%20b&tag=c',
    '/v1/library?next=/v1/../v2&x=%2e%2e%2f',
    '/v1/search?q=a?b=c',
    '/v1/caf%C3%A9/100%25',
    '/v1/a.b..c/.../~user',
    '/v1/a;b=c,d:e@f!$&()*+=',
    '/v1//twice//',
    '/v1/music/v1/v2',
  ])('maps %s to the same path below the upstream base', async (path) => {
    await using world = startWorld();
    world.upstream.on(`GET ${path}`, () => new Response('found'));
    const response = await world.request(`/api/upstream${path}`, { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('found');
    expect(world.upstream.calls).toEqual([`GET ${path}`]);
  });

  it.each(METHODS)('passes %s on as it is, with the access token', async (method) => {
    await using world = startWorld();
    world.upstream.on(`${method} /v1/library`, () => new Response('done'));
    const response = await world.request('/api/upstream/v1/library', { method, cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(method === 'HEAD' ? '' : 'done');
    expect(world.upstream.calls).toEqual([`${method} /v1/library`]);
    const { headers, body } = world.upstream.last(`${method} /v1/library`);
    expect(headers.get('authorization')).toBe('Bearer access-1');
    expect(body).toBe('');
  });

  it.each(['TRACE', 'CONNECT', 'PROPFIND', 'QUERY', 'PURGE'])('refuses %s', async (method) => {
    await using world = startWorld();
    const answer = await rawCall(world, method, '/v1/library');
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET, HEAD, POST, PUT, PATCH, DELETE');
    expect(answer.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(JSON.parse(answer.body)).toEqual({
      error: { message: 'This address does not support the request method.' },
    });
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(METHODS)('answers %s with 401 when there is no session', async (method) => {
    await using world = startWorld();
    const response = await world.request('/api/upstream/v1/library', { method });
    expect(response.status).toBe(401);
    if (method !== 'HEAD') expect(await envelopeMessage(response, 401)).toBe('You are not signed in.');
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(['/', '', '/v2/library', '/v1', '/V1/library', '/v11/library', '/admin', '/?/v1/library'])(
    'knows nothing at "%s", whatever the method and session',
    async (path) => {
      await using world = startWorld();
      for (const cookie of [SIGNED_IN, '']) {
        const response = await world.request(`/api/upstream${path}`, { cookie });
        expect(await envelopeMessage(response, 404)).toBe('There is nothing at this address.');
      }
      expect(world.upstream.calls).toEqual([]);
    },
  );
});

describe('request headers of the proxy', () => {
  const FORWARDED = {
    accept: 'audio/mpeg;q=0.9',
    'accept-encoding': 'br;q=0.9, gzip',
    'accept-language': 'sw, en;q=0.5',
    'cache-control': 'no-cache, max-age=0',
    'content-encoding': 'gzip',
    'content-type': 'text/plain; charset=x',
    'idempotency-key': '7f0c3c5e-0000-4000-8000-000000000000',
    'if-match': '"one", "two"',
    'if-modified-since': 'Wed, 21 Oct 2026 07:28:00 GMT',
    'if-none-match': 'W/"three"',
    'if-range': '"four"',
    'if-unmodified-since': 'Wed, 21 Oct 2026 07:28:01 GMT',
    pragma: 'no-cache',
    range: 'bytes=0-99, 200-',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  };

  it.each(Object.entries(FORWARDED))('carry %s unchanged', async (name, value) => {
    await using world = startWorld();
    world.upstream.on('POST /v1/library', () => new Response());
    const headers = { [name]: value };
    await world.request('/api/upstream/v1/library', { method: 'POST', cookie: SIGNED_IN, headers });
    expect(world.upstream.last('POST /v1/library').headers.get(name)).toBe(value);
  });

  it('leave out everything else', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/library', () => new Response());
    const answer = await rawCall(
      world,
      'GET',
      '/v1/library',
      'Authorization: Bearer chosen-by-the-client',
      'Referer: http://studio.test/page',
      'User-Agent: a-browser',
      'Forwarded: for=10.0.0.1;host=evil.test',
      'X-Forwarded-For: 10.0.0.1',
      'X-Forwarded-Host: evil.test',
      'X-Forwarded-Proto: https',
      'X-Real-IP: 10.0.0.1',
      'X-Original-URL: /admin',
      'X-HTTP-Method-Override: DELETE',
      'X-Api-Key: key',
      'X-Random: random',
      'Sec-Fetch-Site: cross-site',
      'Keep-Alive: timeout=5',
      'Proxy-Authorization: Basic eDp5',
      'Proxy-Connection: keep-alive',
      'TE: trailers',
      'Trailer: X-Trailer',
      'Max-Forwards: 3',
    );
    expect(answer.status).toBe(200);
    const { headers } = world.upstream.last('GET /v1/library');
    expect(Object.fromEntries(headers)).toEqual({
      accept: 'application/json',
      authorization: 'Bearer access-1',
      // What a client of HTTP itself needs, none of it from the browser.
      connection: 'keep-alive',
      host: new URL(world.upstream.upstreamUrl).host,
      'user-agent': `Bun/${Bun.version}`,
      // By which the upstream's log and the gateway's name the same request.
      traceparent: expect.any(String),
      'x-request-id': expect.any(String),
      via: '1.1 music-gateway',
    });
  });

  it('ask for the bytes of a range as they are, whatever encodings the client takes', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/track', () => new Response());
    await rawCall(world, 'GET', '/v1/track', 'Range: bytes=0-99', 'Accept-Encoding: gzip, br');
    await rawCall(world, 'GET', '/v1/track', 'Range: bytes=0-99');
    const sent = world.upstream.received.map(({ headers }) => headers.get('accept-encoding'));
    expect(sent).toEqual(['identity', 'identity']);
  });

  it.each([
    [
      'one that is valid',
      '1.1 edge.test, 1.0 fred (a comment)',
      '1.1 edge.test, 1.0 fred (a comment), 1.1 music-gateway',
    ],
    ['one of 1 KB', `1.1 ${'e'.repeat(1020)}`, `1.1 ${'e'.repeat(1020)}, 1.1 music-gateway`],
    ['none that is longer', `1.1 ${'e'.repeat(1021)}`, '1.1 music-gateway'],
    ['none with a control character', '1.1 edge\x7f', '1.1 music-gateway'],
    ['none with a letter outside ASCII', '1.1 edg\xe9', '1.1 music-gateway'],
    ['none that is empty', '', '1.1 music-gateway'],
  ])('have a Via that names the gateway after that of a proxy in front: %s', async (_, via, expected) => {
    await using world = startWorld();
    world.upstream.on('GET /v1/library', () => new Response());
    const answer = await rawCall(world, 'GET', '/v1/library', `Via: ${via}`);
    expect(answer.status).toBe(200);
    expect(world.upstream.last('GET /v1/library').headers.get('via')).toBe(expected);
  });

  it('carry none that Connection names, in any case and any line', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/library', () => new Response());
    const answer = await rawCall(
      world,
      'GET',
      '/v1/library',
      'Connection: IF-MATCH,accept-language',
      'Connection: ,range , via',
      'If-Match: "one"',
      'Accept-Language: sw',
      'Range: bytes=0-1',
      'Via: 1.1 edge.test',
      'If-None-Match: "two"',
    );
    expect(answer.status).toBe(200);
    const { headers } = world.upstream.last('GET /v1/library');
    for (const name of ['if-match', 'accept-language', 'range', 'accept-encoding']) {
      expect([name, headers.get(name)]).toEqual([name, null]);
    }
    expect(headers.get('via')).toBe('1.1 music-gateway');
    expect(headers.get('if-none-match')).toBe('"two"');
  });

  it('leave out what Connection names, and Upgrade', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/library', () => new Response());
    const answer = await rawRequest(
      world.port,
      `GET /api/upstream/v1/library HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\n` +
        'Connection: close, upgrade, x-hop\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\nX-Hop: 1\r\n\r\n',
    );
    expect(answer.status).toBe(200);
    const { headers } = world.upstream.last('GET /v1/library');
    expect([...headers.keys()].toSorted()).toEqual([
      'accept',
      'authorization',
      'connection',
      'host',
      'traceparent',
      'user-agent',
      'via',
      'x-request-id',
    ]);
    expect(headers.get('connection')).toBe('keep-alive');
  });
});

describe('response headers of the proxy', () => {
  const FORWARDED = {
    'accept-ranges': 'bytes',
    age: '12',
    allow: 'GET, HEAD, OPTIONS',
    'cache-control': 'private, max-age=60',
    'content-disposition': 'attachment; filename="a.mp3"',
    'content-language': 'sw',
    'content-location': 'https://cdn.test/a.json',
    'content-range': 'bytes 0-3/10',
    'content-type': 'audio/mpeg',
    etag: '"abc"',
    expires: 'Wed, 21 Oct 2026 07:28:00 GMT',
    'last-modified': 'Wed, 21 Oct 2026 07:28:01 GMT',
    link: '<https://docs.test/>; rel="help"',
    location: 'https://cdn.test/a.mp3',
    'retry-after': '120',
    ratelimit: '"default";r=50;t=30',
    'ratelimit-policy': '"default";q=100;w=60',
    'ratelimit-limit': '100',
    'ratelimit-remaining': '50',
    'ratelimit-reset': '30',
    'x-ratelimit-limit': '101',
    'x-ratelimit-remaining': '51',
    'x-ratelimit-reset': '31',
    'x-ratelimit-limit-requests': '102',
    'x-generation-id': 'generation-1',
    'x-music-creation-id': 'creation-1',
  };
  const NEVER = [
    'Set-Cookie: svc_music_access=stolen; Path=/',
    'Set-Cookie: other=1',
    'Access-Control-Allow-Origin: *',
    'Access-Control-Allow-Credentials: false',
    'Access-Control-Allow-Methods: TRACE',
    'Access-Control-Allow-Headers: X-Evil',
    'Access-Control-Expose-Headers: Set-Cookie',
    'Access-Control-Max-Age: 999999',
    'Access-Control-Allow-Private-Network: true',
    'Clear-Site-Data: "cookies"',
    'Content-Security-Policy: default-src *',
    'Content-Security-Policy-Report-Only: default-src *',
    'Cross-Origin-Resource-Policy: cross-origin',
    'Keep-Alive: timeout=5',
    'NEL: {}',
    'Proxy-Authenticate: Basic',
    'Proxy-Connection: keep-alive',
    'Refresh: 0; url=https://evil.test/',
    'Report-To: {}',
    'Server: upstream/1.0',
    'Service-Worker-Allowed: /',
    'SourceMap: /map',
    'Strict-Transport-Security: max-age=1',
    'Trailer: X-Trailer',
    'Upgrade: h2c',
    'Via: 1.1 upstream',
    'WWW-Authenticate: Bearer realm="upstream"',
    'X-Content-Type-Options: off',
    'X-Hop: 1',
    'X-Powered-By: upstream',
    'X-Random: random',
    'X-Rate-Limit: 1',
  ];
  /** What the gateway itself says, on every proxied answer. */
  const OWN = [
    'access-control-allow-credentials',
    'access-control-allow-origin',
    'access-control-expose-headers',
    'content-length',
    'content-security-policy',
    'date',
    'vary',
    'x-content-type-options',
    'x-request-id',
  ];

  it.each(Object.entries(FORWARDED))('carry %s unchanged', async (name, value) => {
    await using world = startWorld();
    world.upstream.on('GET /v1/library', () => new Response('body', { headers: { [name]: value } }));
    const response = await world.request('/api/upstream/v1/library', { cookie: SIGNED_IN });
    expect(response.headers.get(name)).toBe(value);
    expect(await response.text()).toBe('body');
  });

  it('leave out everything else', async () => {
    const listed = Object.entries(FORWARDED).map(([name, value]) => `${name}: ${value}`);
    const head = ['HTTP/1.1 200 Fine', 'Connection: close, X-Hop', 'Content-Length: 4', ...NEVER, ...listed];
    await using upstream = await startRawUpstream((socket) => socket.end(`${head.join('\r\n')}\r\n\r\nbody`));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const answer = await rawCall(world, 'GET', '/v1/library');
    expect(answer.status).toBe(200);
    expect(answer.body).toBe('body');
    expect([...answer.headers.keys()].toSorted()).toEqual([...OWN, ...Object.keys(FORWARDED)].toSorted());
    expect(answer.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(answer.headers.get('access-control-allow-credentials')).toBe('true');
    expect(answer.headers.get('vary')).toBe('Origin, Cookie');
  });

  it.each([
    ['Accept-Language', 'Origin, Cookie, Accept-Language'],
    ['accept-encoding,ACCEPT-LANGUAGE', 'Origin, Cookie, accept-encoding, ACCEPT-LANGUAGE'],
    ['cookie, origin, Accept, accept', 'Origin, Cookie, Accept'],
    ['Accept, a b, "c", , d(e), x-y', 'Origin, Cookie, Accept, x-y'],
    [', "', 'Origin, Cookie'],
    ['', 'Origin, Cookie'],
    ['*', '*'],
    ['Accept, * ,x', '*'],
  ])('vary by what the upstream names, too: %j', async (vary, expected) => {
    await using world = startWorld();
    world.upstream.on('GET /v1/library', () => new Response('body', { headers: { vary } }));
    const response = await world.request('/api/upstream/v1/library', { cookie: SIGNED_IN });
    expect(response.headers.get('vary')).toBe(expected);
    expect(await response.text()).toBe('body');
  });

  it('vary by what each line of the upstream names', async () => {
    const head = 'HTTP/1.1 200 OK\r\nVary: Accept\r\nContent-Length: 4\r\nvary: Accept-Language\r\n';
    await using upstream = await startRawUpstream((socket) => socket.end(`${head}\r\nbody`));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const answer = await rawCall(world, 'GET', '/v1/library');
    expect(answer.headers.get('vary')).toBe('Origin, Cookie, Accept, Accept-Language');
  });

  it('vary by both, and expose all limits, with the cookies of a refresh', async () => {
    await using world = startWorld();
    const headers = { vary: 'Accept-Language', 'x-ratelimit-used': '3' };
    world.upstream
      .on('GET /v1/library', () => new Response('body', { headers }))
      .on('POST /v1/auth/refresh', () => Response.json({ access_token: 'a', refresh_token: 'r' }));
    const response = await world.request('/api/upstream/v1/library', { cookie: REFRESH_ONLY });
    expect(response.headers.getSetCookie()).toHaveLength(2);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('vary')).toBe('Origin, Cookie, Accept-Language');
    expect(exposed(response)).toContain('x-ratelimit-used');
  });

  it('leave out what the upstream’s Connection names, even what would be relayed', async () => {
    const head = [
      'HTTP/1.1 200 OK',
      'Connection: Close, ETAG',
      'Connection: x-ratelimit-used , link',
      'ETag: "one"',
      'X-RateLimit-Used: 3',
      'Link: </v1/>; rel="next"',
      'Expires: 0',
      'Content-Length: 4',
    ];
    await using upstream = await startRawUpstream((socket) => socket.end(`${head.join('\r\n')}\r\n\r\nbody`));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const answer = await rawCall(world, 'GET', '/v1/library');
    expect(answer.status).toBe(200);
    expect(answer.body).toBe('body');
    for (const name of ['etag', 'x-ratelimit-used', 'link']) {
      expect([name, answer.headers.get(name)]).toEqual([name, null]);
    }
    expect(answer.headers.get('expires')).toBe('0');
    expect(answer.headers.get('access-control-expose-headers')).not.toContain('x-ratelimit-used');
  });

  it('let scripts read every rate limit that they carry, listed or not', async () => {
    await using world = startWorld();
    const headers = {
      'X-RateLimit-Used': '3',
      'X-RateLimit-Limit': '10',
      'RateLimit-Resource': 'core',
      'X-RateLimit-Limit-Requests': '102',
      'X-Rate-Limit': 'not of the family',
    };
    world.upstream
      .on('GET /v1/limited', () => new Response('body', { headers }))
      .on('GET /v1/free', () => new Response('body', { headers: { 'x-ratelimit-limit': '10' } }));
    const limited = await world.request('/api/upstream/v1/limited', { cookie: SIGNED_IN });
    const free = await world.request('/api/upstream/v1/free', { cookie: SIGNED_IN });
    const health = await world.request('/api/health');
    expect(exposed(health)).toContain('x-ratelimit-limit');
    expect(exposed(free)).toEqual(exposed(health));
    const more = ['ratelimit-resource', 'x-ratelimit-limit-requests', 'x-ratelimit-used'];
    expect(exposed(limited).toSorted()).toEqual([...exposed(health), ...more].toSorted());
    expect(limited.headers.get('x-ratelimit-used')).toBe('3');
  });

  it.each([200, 404, 500])('keep the HTML of a %d from running on our origin', async (status) => {
    await using world = startWorld();
    const html = '<script>alert(1)</script>';
    const headers = { 'content-type': 'text/html', 'content-security-policy': 'default-src *' };
    world.upstream.on('GET /v1/page', () => new Response(html, { status, headers }));
    const response = await world.request('/api/upstream/v1/page', { cookie: SIGNED_IN });
    expect(response.status).toBe(status);
    expect(response.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(await response.text()).toBe(html);
  });

  // A known defect: Elysia runs the handler of GET for a HEAD, counts the bytes of its body and sets that as the length.
  it('of a HEAD are those of the upstream, with the length of the body it would send', async () => {
    const headers = { 'content-type': 'audio/mpeg', 'content-length': '123456', etag: '"abc"' };
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    await using upstream = await startRawUpstream((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\n${head.join('')}\r\n`),
    );
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const answer = await rawCall(world, 'HEAD', '/v1/track');
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject(headers);
    expect(answer.body).toBe('');
  });
});

describe('status and body through the proxy', () => {
  it.each([
    200, 201, 202, 203, 207, 226, 300, 305, 400, 402, 403, 404, 405, 409, 410, 412, 413, 416, 418, 422, 425,
    428, 429, 451, 499, 500, 501, 502, 503, 504, 511, 599,
  ])('%d passes without an envelope', async (status) => {
    await using world = startWorld();
    world.upstream.on('GET /v1/any', () => new Response(`{"detail":"${status}"}`, { status }));
    const response = await world.request('/api/upstream/v1/any', { cookie: SIGNED_IN });
    expect(response.status).toBe(status);
    expect(await response.text()).toBe(`{"detail":"${status}"}`);
    expect(world.upstream.calls).toEqual(['GET /v1/any']);
    expect(world.log).toHaveLength(status >= 500 ? 1 : 0);
  });

  it('a 401 passes when there is nothing to refresh with', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/any', () => new Response('no', { status: 401 }));
    const response = await world.request('/api/upstream/v1/any', { cookie: ACCESS_ONLY });
    expect(response.status).toBe(401);
    expect(await response.text()).toBe('no');
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual(['GET /v1/any']);
  });

  it('a 405 passes with the methods that the upstream allows, proxied or not', async () => {
    await using world = startWorld();
    const headers = { allow: 'GET, OPTIONS, QUERY' };
    world.upstream.on('PUT /v1/any', () => new Response('no', { status: 405, headers }));
    const response = await world.request('/api/upstream/v1/any', { method: 'PUT', cookie: SIGNED_IN });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, OPTIONS, QUERY');
    expect(await response.text()).toBe('no');
  });

  it.each([204, 205, 304])('a %d passes without a body', async (status) => {
    await using world = startWorld();
    world.upstream.on('GET /v1/any', () => new Response(null, { status, headers: { etag: '"abc"' } }));
    const headers = { 'if-none-match': '"abc"' };
    const response = await world.request('/api/upstream/v1/any', { cookie: SIGNED_IN, headers });
    expect(response.status).toBe(status);
    expect(response.headers.get('etag')).toBe('"abc"');
    expect(await response.text()).toBe('');
    expect(world.upstream.last('GET /v1/any').headers.get('if-none-match')).toBe('"abc"');
  });

  it('a part of a track passes as 206 with its Content-Range', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/track', ({ headers }) => {
      const contentRange = headers.get('range') === 'bytes=2-5' ? 'bytes 2-5/10' : 'bytes */10';
      return new Response('cdef', { status: 206, headers: { 'content-range': contentRange } });
    });
    const response = await world.request('/api/upstream/v1/track', {
      cookie: SIGNED_IN,
      headers: { range: 'bytes=2-5' },
    });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe('bytes 2-5/10');
    expect(await response.text()).toBe('cdef');
  });

  it('every byte arrives as it was sent', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/track', () => new Response(ALL_BYTES));
    const response = await world.request('/api/upstream/v1/track', { cookie: SIGNED_IN });
    expect(await response.bytes()).toEqual(ALL_BYTES);
  });

  it.each([
    ['gzip', Bun.gzipSync(ALL_BYTES)],
    ['deflate', Bun.deflateSync(ALL_BYTES)],
    ['an-encoding-of-its-own', ALL_BYTES],
  ])('a body encoded with %s arrives as the very same bytes', async (encoding, bytes) => {
    await using world = startWorld();
    world.upstream.on(
      'GET /v1/track',
      () => new Response(bytes, { headers: { 'content-encoding': encoding } }),
    );
    const response = await world.request('/api/upstream/v1/track', { cookie: SIGNED_IN, decompress: false });
    expect(response.headers.get('content-encoding')).toBe(encoding);
    expect(await response.bytes()).toEqual(Uint8Array.from(bytes));
  });

  it('a list is relayed compressed when the client accepts that', async () => {
    await using world = startWorld();
    const list = JSON.stringify(Array.from({ length: 500 }, (_, id) => ({ id, title: 'a song' })));
    world.upstream.on('GET /v1/library', ({ headers }) =>
      headers.get('accept-encoding')?.includes('gzip')
        ? new Response(Bun.gzipSync(list), {
            headers: { 'content-encoding': 'gzip', vary: 'Accept-Encoding' },
          })
        : new Response(list),
    );
    const options = { cookie: SIGNED_IN, decompress: false, headers: { 'accept-encoding': 'gzip' } };
    const response = await world.request('/api/upstream/v1/library', options);
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect(response.headers.get('vary')).toBe('Origin, Cookie, Accept-Encoding');
    expect(await response.bytes()).toEqual(Uint8Array.from(Bun.gzipSync(list)));
  });

  it('a body that the upstream encoded is decoded by the browser', async () => {
    await using world = startWorld();
    const headers = { 'content-encoding': 'gzip' };
    world.upstream.on('GET /v1/track', () => new Response(Bun.gzipSync('the text'), { headers }));
    const response = await world.request('/api/upstream/v1/track', { cookie: SIGNED_IN });
    expect(await response.text()).toBe('the text');
  });

  it('a body arrives before the upstream has finished it', async () => {
    await using world = startWorld();
    const firstIsRead = Promise.withResolvers<void>();
    world.upstream.on('POST /v1/export', () => {
      async function* chunks() {
        yield Buffer.from('first');
        await firstIsRead.promise;
        yield Buffer.from('second');
      }
      return new Response(chunks());
    });
    const response = await world.request('/api/upstream/v1/export', { method: 'POST', cookie: SIGNED_IN });
    const texts: string[] = [];
    for await (const chunk of response.body ?? []) {
      texts.push(Buffer.from(chunk).toString());
      firstIsRead.resolve();
    }
    expect(texts).toEqual(['first', 'second']);
  });
});

describe('addresses in response headers of the proxy', () => {
  const ask = async (headers: Record<string, string>) => {
    await using world = startWorld();
    const sent = Object.entries(headers).map(([name, value]): [string, string] => [
      name,
      value.replaceAll('<base>', world.upstream.upstreamUrl),
    ]);
    world.upstream.on('GET /v1/dir/start?page=1', () => new Response('list', { headers: sent }));
    const response = await world.request('/api/upstream/v1/dir/start?page=1', { cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('list');
    expect(world.upstream.calls).toEqual(['GET /v1/dir/start?page=1']);
    return response.headers;
  };

  it.each([
    ['<base>/v1/elsewhere', '/api/upstream/v1/elsewhere'],
    ['elsewhere.sw.json', '/api/upstream/v1/dir/elsewhere.sw.json'],
    ['https://cdn.test/a', 'https://cdn.test/a'],
    ['<base>/admin', null],
    ['/v1/elsewhere', null],
  ])('are mapped in Content-Location: %s', async (address, expected) => {
    expect((await ask({ 'content-location': address })).get('content-location')).toBe(expected);
  });

  it.each([
    [
      '<<base>/v1/dir/start?page=2>; rel=next; title="a, b", <?page=9>; rel="last"',
      '</api/upstream/v1/dir/start?page=2>; rel=next; title="a, b", </api/upstream/v1/dir/start?page=9>; rel="last"',
    ],
    ['<<base>/admin>; rel=up, <https://docs.test/>; rel=help', '<https://docs.test/>; rel=help'],
    ['<<base>/admin>; rel=up', null],
    ['no link at all', null],
  ])('are mapped in Link: %s', async (link, expected) => {
    expect((await ask({ link })).get('link')).toBe(expected);
  });
});

describe('redirects through the proxy', () => {
  const answerWithLocation = (world: World, status: number, location: string) =>
    world.upstream.on('GET /v1/dir/start', () => new Response('moved', { status, headers: { location } }));
  const ask = (world: World) => world.request('/api/upstream/v1/dir/start', { cookie: SIGNED_IN });

  it.each([301, 302, 303, 307, 308])('are not followed: %d', async (status) => {
    await using world = startWorld();
    answerWithLocation(world, status, '/base/v1/elsewhere');
    const response = await ask(world);
    expect(response.status).toBe(status);
    expect(response.headers.get('location')).toBe('/api/upstream/v1/elsewhere');
    expect(await response.text()).toBe('moved');
    expect(world.upstream.calls).toEqual(['GET /v1/dir/start']);
  });

  it.each([
    ['<base>/v1/elsewhere?a=b#c', '/api/upstream/v1/elsewhere?a=b#c'],
    ['/base/v1/elsewhere', '/api/upstream/v1/elsewhere'],
    ['/base/v1/', '/api/upstream/v1/'],
    ['elsewhere', '/api/upstream/v1/dir/elsewhere'],
    ['./elsewhere', '/api/upstream/v1/dir/elsewhere'],
    ['../elsewhere', '/api/upstream/v1/elsewhere'],
    ['?page=2', '/api/upstream/v1/dir/start?page=2'],
    ['/base/v2/../v1/elsewhere', '/api/upstream/v1/elsewhere'],
  ])('have a Location under the upstream base rewritten: %s', async (location, expected) => {
    await using world = startWorld();
    answerWithLocation(world, 302, location.replace('<base>', world.upstream.upstreamUrl));
    expect((await ask(world)).headers.get('location')).toBe(expected);
  });

  it.each(['https://cdn.test/base/v1/track?signature=a%2Bb', 'http://127.0.0.1.evil.test/base/v1/x'])(
    'keep a Location on another host: %s',
    async (location) => {
      await using world = startWorld();
      answerWithLocation(world, 302, location);
      expect((await ask(world)).headers.get('location')).toBe(location);
    },
  );

  it.each([
    '<base>/v2/elsewhere',
    '<base>/v1',
    '<base>/v1x/elsewhere',
    '<base>',
    '<base>/v1/../v2/elsewhere',
    '<base>/v1/%2e%2e/v2/elsewhere',
    '/v1/elsewhere',
    '/admin',
    '../../elsewhere',
    '//<host>/admin',
    'http://user:secret@<host>/base/v1/elsewhere',
    'http://[not-an-address/',
  ])('lose a Location on the upstream that the gateway does not serve: %s', async (location) => {
    await using world = startWorld();
    const { upstreamUrl } = world.upstream;
    const { host } = new URL(upstreamUrl);
    answerWithLocation(world, 302, location.replace('<base>', upstreamUrl).replace('<host>', host));
    const response = await ask(world);
    expect(response.status).toBe(302);
    expect(response.headers.get('location')).toBeNull();
  });

  it('have their Location rewritten for an upstream without a base path', async () => {
    await using upstream = await startRawUpstream((socket) =>
      socket.end('HTTP/1.1 302 Found\r\nLocation: /v1/elsewhere\r\nContent-Length: 0\r\n\r\n'),
    );
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    expect((await ask(world)).headers.get('location')).toBe('/api/upstream/v1/elsewhere');
  });

  // A known defect: the base address is compared as it was written in the settings, not as it is sent.
  it('have their Location rewritten for a base address in an unusual spelling', async () => {
    await using upstream = await startRawUpstream((socket) =>
      socket.end('HTTP/1.1 302 Found\r\nLocation: /v1/elsewhere\r\nContent-Length: 0\r\n\r\n'),
    );
    await using world = startWorld({
      UPSTREAM_URL: upstream.url.replace('http://127.0.0.1', 'HTTP://127.1'),
    });
    expect((await ask(world)).headers.get('location')).toBe('/api/upstream/v1/elsewhere');
  });
});

describe('request bodies through the proxy', () => {
  it.each(METHODS_WITH_BODY)('of %s arrive with their content type', async (method) => {
    await using world = startWorld();
    world.upstream.on(`${method} /v1/any`, () => new Response());
    const body = '{"is_public": true, "ümlaut": 1e400}';
    const headers = { 'content-type': 'application/merge-patch+json' };
    await world.request('/api/upstream/v1/any', { method, cookie: SIGNED_IN, body, headers });
    const received = world.upstream.last(`${method} /v1/any`);
    expect(received.body).toBe(body);
    expect(received.headers.get('content-type')).toBe('application/merge-patch+json');
  });

  it.each([
    ['application/json', '{ not JSON'],
    [
      'multipart/form-data; boundary=x',
      '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n',
    ],
    ['application/x-www-form-urlencoded', 'a=%zz&a'],
    ['text/plain', ''],
  ])('are not looked into: %s', async (contentType, body) => {
    await using world = startWorld();
    world.upstream.on('POST /v1/any', () => new Response());
    const headers = { 'content-type': contentType };
    const options = { method: 'POST', cookie: SIGNED_IN, body, headers };
    const response = await world.request('/api/upstream/v1/any', options);
    expect(response.status).toBe(200);
    expect(world.upstream.last('POST /v1/any')).toMatchObject({ body });
  });

  it('pass as they are encoded', async () => {
    const bodies: Uint8Array[] = [];
    await using upstream = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: async (request) => {
        bodies.push(await request.bytes());
        return new Response(request.headers.get('content-encoding'));
      },
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url.href });
    const body = Bun.gzipSync('{"is_public":true}');
    const headers = { 'content-encoding': 'gzip', 'content-type': 'application/json' };
    const options = { method: 'PATCH', cookie: SIGNED_IN, headers, body };
    const response = await world.request('/api/upstream/v1/any', options);
    expect(await response.text()).toBe('gzip');
    expect(bodies).toEqual([Uint8Array.from(body)]);
  });

  it('are sent again after a refresh, with the same headers', async () => {
    await using world = startWorld();
    world.upstream
      .on('PATCH /v1/any', ({ headers }) => {
        const renewed = headers.get('authorization') === 'Bearer access-2';
        const cookie = { 'set-cookie': 'svc_music_access=from-the-upstream' };
        return new Response(renewed ? 'done' : 'expired', { status: renewed ? 200 : 401, headers: cookie });
      })
      .on('POST /v1/auth/refresh', () =>
        Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
      );
    const sent = { 'content-type': 'application/json', 'idempotency-key': 'key-1', 'if-match': '"v1"' };
    const response = await world.request('/api/upstream/v1/any', {
      method: 'PATCH',
      cookie: SIGNED_IN,
      headers: sent,
      body: '{"is_public":true}',
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('done');
    expect(storedTokens(response)).toEqual({ svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' });
    expect(world.upstream.calls).toEqual(['PATCH /v1/any', 'POST /v1/auth/refresh', 'PATCH /v1/any']);
    const [first, , second] = world.upstream.received;
    for (const received of [first, second]) {
      expect(received?.body).toBe('{"is_public":true}');
      expect(Object.fromEntries(received?.headers ?? [])).toMatchObject(sent);
    }
  });

  it.each(['declared', 'chunked'])('keep every byte, also when sent again: %s', async (length) => {
    const bodies: Uint8Array[] = [];
    await using upstream = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      routes: {
        '/v1/upload': async (request) => {
          bodies.push(await request.bytes());
          return new Response(null, { status: bodies.length === 1 ? 401 : 201 });
        },
        '/v1/auth/refresh': Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
      },
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url.href });
    const response = await world.request('/api/upstream/v1/upload', {
      method: 'PUT',
      cookie: SIGNED_IN,
      headers: { 'content-type': 'application/octet-stream' },
      body: length === 'declared' ? ALL_BYTES : allBytesInChunks(),
    });
    expect(response.status).toBe(201);
    expect(bodies).toEqual([ALL_BYTES, ALL_BYTES]);
  });
});

describe('a request that has no body to forward', () => {
  const rawBody = (world: World, start: string, lines: string, body: string) =>
    rawRequest(
      world.port,
      `${start} HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\n` +
        `Connection: close\r\n${lines}\r\n\r\n${body}`,
    );
  const BODIES = [
    ['of known length', 'Content-Length: 5', 'hello'],
    ['in chunks', 'Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'],
    ['of no chunk', 'Transfer-Encoding: chunked', '0\r\n\r\n'],
  ] as const;
  const STARTS = ['GET /api/upstream/v1/library', 'GET /api/upstream/v1/music/public/abc'];
  const cases = STARTS.flatMap((start) => BODIES.map((body) => [start, ...body] as const));

  it.each(cases)('is refused with one: %s, %s', async (start, _, lines, body) => {
    await using world = startWorld();
    const answer = await rawBody(world, start, lines, body);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toEqual({
      error: { message: 'A GET or HEAD request must not have a body.' },
    });
    expect(answer.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(answer.headers.get('connection')).toBe('close');
    expect(world.upstream.calls).toEqual([]);
    expect(world.admission.streams.inUse).toBe(0);
  });

  it.each(BODIES)('is refused with one as a HEAD, too: %s', async (_, lines, body) => {
    await using world = startWorld();
    const answer = await rawBody(world, 'HEAD /api/upstream/v1/library', lines, body);
    expect(answer.status).toBe(400);
    expect(world.upstream.calls).toEqual([]);
  });

  it('is refused with 401 before that when there is no session', async () => {
    await using world = startWorld();
    const answer = await rawRequest(
      world.port,
      `GET /api/upstream/v1/library HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello`,
    );
    expect(answer.status).toBe(401);
    expect(world.upstream.calls).toEqual([]);
  });

  it('is forwarded with a length of 0', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/library', () => new Response('done'));
    const answer = await rawBody(world, 'GET /api/upstream/v1/library', 'Content-Length: 0', '');
    expect(answer.status).toBe(200);
    expect(answer.body).toBe('done');
    expect(world.upstream.calls).toEqual(['GET /v1/library']);
    expect(world.upstream.last('GET /v1/library').body).toBe('');
  });
});

describe('an upstream that fails', () => {
  it.each(METHODS)('is told as 502 to %s, without its address', async (method) => {
    // Nothing listens on the discard port; a port that was free a moment ago could be taken again.
    await using world = startWorld({ UPSTREAM_URL: 'http://127.0.0.1:9/secret-base' });
    const response = await world.request('/api/upstream/v1/any', { method, cookie: SIGNED_IN });
    expect(response.status).toBe(502);
    const body = await response.text();
    if (method !== 'HEAD') {
      expect(JSON.parse(body)).toEqual({
        error: { message: 'The music service cannot be reached right now.' },
      });
    }
    expect(response.headers.getSetCookie()).toEqual([]);
    const told = `${body}${JSON.stringify([...response.headers])}${world.log.join('\n')}`;
    for (const secret of ['127.0.0.1', 'secret-base']) expect(told).not.toContain(secret);
    expect(world.log).toHaveLength(1);
  });

  it.each([
    ['closes without an answer', ''],
    ['does not speak HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['answers with a status below 200', 'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n'],
    ['answers with a status above 599', 'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n'],
    ['breaks off in the headers', 'HTTP/1.1 200 OK\r\nContent-Ty'],
  ])('and %s is told as 502, and not asked again', async (_, bytes) => {
    await using upstream = await startRawUpstream((socket) => socket.end(bytes));
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const options = { method: 'POST', cookie: SIGNED_IN, body: 'x' };
    const response = await world.request('/api/upstream/v1/any', options);
    expect(await envelopeMessage(response, 502)).toStartWith('The music service');
    expect(upstream.connections).toBe(1);
  });

  it.each(['POST', 'PATCH'])(
    'by closing a used connection cannot fail a %s, which gets a new one',
    async (method) => {
      await using upstream = await startRawUpstream((socket) =>
        // The connection stays open, but a second request on it would never be answered.
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
      );
      await using world = startWorld({ UPSTREAM_URL: upstream.url });
      for (const connections of [1, 2]) {
        const response = await world.request('/api/upstream/v1/any', {
          method,
          cookie: SIGNED_IN,
          body: 'x',
        });
        expect(await response.text()).toBe('ok');
        expect(upstream.connections).toBe(connections);
      }
    },
  );

  it.each([429, 500, 503])('with %d is not asked again', async (status) => {
    await using world = startWorld();
    const headers = { 'retry-after': '7' };
    world.upstream.on('GET /v1/any', () => new Response('later', { status, headers }));
    const response = await world.request('/api/upstream/v1/any', { cookie: SIGNED_IN });
    expect(response.status).toBe(status);
    expect(response.headers.get('retry-after')).toBe('7');
    expect(world.upstream.calls).toEqual(['GET /v1/any']);
  });
});
