import { describe, expect, it } from 'bun:test';
import { rawRequest } from '../support/raw-http.ts';
import { envelopeMessage, ORIGIN, type RequestOptions, SIGNED_IN, startWorld } from '../support/world.ts';

const OTHER_ALLOWED_ORIGIN = 'http://other-studio.test:8080';
const EVIL_ORIGIN = 'http://evil.test';

const ROUTES: [method: string, path: string][] = [
  ['POST', '/api/auth/idp'],
  ['GET', '/api/auth/session'],
  ['HEAD', '/api/auth/session'],
  ['POST', '/api/auth/logout'],
  ['GET', '/api/music/models'],
  ['POST', '/api/music/generate'],
  ['GET', '/api/upstream/v1/library'],
  ['HEAD', '/api/upstream/v1/library'],
  ['POST', '/api/upstream/v1/library'],
  ['PUT', '/api/upstream/v1/library'],
  ['PATCH', '/api/upstream/v1/library'],
  ['DELETE', '/api/upstream/v1/library'],
  ['GET', '/api/upstream/v1/music/public/abc'],
  ['GET', '/api/upstream/v1/music/public/abc/content'],
  ['GET', '/api/upstream/v2/outside'],
  ['GET', '/api/upstream'],
  ['GET', '/api/unknown'],
  ['DELETE', '/api/auth/session'],
  ['GET', '/'],
  ['GET', '/api/health/'],
  ['GET', '/API/HEALTH'],
  ['GET', '/api/health%2f'],
  ['GET', '/api/healthy'],
];

const LOOK_ALIKES = [
  'null',
  '*',
  'studio.test',
  '//studio.test',
  'http://studio.test.evil.test',
  'http://evil-studio.test',
  'http://studio.tes',
  'http://studioxtest',
  'http://a.studio.test',
  'http://studio.test:81',
  'http://studio.test:80',
  'http://other-studio.test',
  'https://studio.test',
  'http://studio.test/',
  'http://studio.test/path',
  'http://studio.test?',
  'http://studio.test#',
  'HTTP://STUDIO.TEST',
  'http://Studio.test',
  'http://studio.test.',
  'http://user@studio.test',
  'http://studio.test@evil.test',
  'http://evil.test/http://studio.test',
  'http://studio.test http://evil.test',
  'http://studio.test,http://other-studio.test:8080',
  'http://studio.test, http://studio.test',
  'constructor',
  '__proto__',
  'toString',
  'hasOwnProperty',
];

const FORWARDED_REQUEST_HEADERS = [
  'accept',
  'accept-language',
  'cache-control',
  'content-encoding',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'pragma',
  'range',
  'traceparent',
  'tracestate',
];

/** Header lines of a raw request, which has to ask for the connection to be closed. */
const CREDENTIALS = `Cookie: ${SIGNED_IN}\r\nConnection: close\r\n`;

/** The comma-separated members of a header, in lower case. */
function members(headers: Headers, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map((member) => member.trim().toLowerCase());
}

describe('the origin rule', () => {
  it.each(ROUTES)('refuses %s %s without an Origin', async (method, path) => {
    await using world = startWorld();
    const response = await world.request(path, { method, origin: null, cookie: SIGNED_IN });
    expect(response.status).toBe(403);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(ROUTES)('refuses %s %s from an origin that is not allowed', async (method, path) => {
    await using world = startWorld();
    const response = await world.request(path, { method, origin: EVIL_ORIGIN, cookie: SIGNED_IN });
    expect(response.status).toBe(403);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(LOOK_ALIKES)('does not take %s for an allowed origin', async (origin) => {
    await using world = startWorld();
    const response = await world.request('/api/music/models', { origin, cookie: SIGNED_IN });
    expect(await envelopeMessage(response, 403)).toBe('Requests from this origin are not allowed.');
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['twice the same', `Origin: ${ORIGIN}\r\nOrigin: ${ORIGIN}\r\n`],
    ['two allowed ones', `Origin: ${ORIGIN}\r\nOrigin: ${OTHER_ALLOWED_ORIGIN}\r\n`],
    ['an allowed one first', `Origin: ${ORIGIN}\r\nOrigin: ${EVIL_ORIGIN}\r\n`],
    ['an allowed one last', `Origin: ${EVIL_ORIGIN}\r\nOrigin: ${ORIGIN}\r\n`],
    ['an empty one', 'Origin:\r\n'],
    ['a name that only ends in Origin', `X-Origin: ${ORIGIN}\r\n`],
    ['only a Referer', `Referer: ${ORIGIN}/\r\n`],
    ['a letter outside ASCII', 'Origin: http://studi\xf6.test\r\n'],
  ])('refuses a request with %s', async (_, originHeaders) => {
    await using world = startWorld();
    const answer = await rawRequest(
      world.port,
      `GET /api/music/models HTTP/1.1\r\nHost: gateway.test\r\n${originHeaders}${CREDENTIALS}\r\n`,
    );
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.body)).toEqual({
      error: { message: 'Requests from this origin are not allowed.' },
    });
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([ORIGIN, OTHER_ALLOWED_ORIGIN])('lets %s in and names it to the browser', async (origin) => {
    await using world = startWorld();
    world.upstream.on('GET /v1/models', () => Response.json([]));
    const response = await world.request('/api/music/models', { origin, cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe(origin);
    expect(response.headers.get('access-control-allow-credentials')).toBe('true');
    expect(world.upstream.calls).toEqual(['GET /v1/models']);
  });

  it('comes before every other check', async () => {
    await using world = startWorld();
    const response = await world.request('/api/music/generate', {
      method: 'POST',
      origin: EVIL_ORIGIN,
      headers: { 'content-type': 'application/json' },
      body: '{ not JSON',
    });
    expect(await envelopeMessage(response, 403)).toBe('Requests from this origin are not allowed.');
    expect(world.upstream.calls).toEqual([]);
  });

  it('keeps the cookies when another origin asks for a sign-out', async () => {
    await using world = startWorld();
    const response = await world.request('/api/auth/logout', {
      method: 'POST',
      origin: EVIL_ORIGIN,
      cookie: SIGNED_IN,
    });
    expect(response.status).toBe(403);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([null, 'null', EVIL_ORIGIN, ORIGIN])('exempts the health check: Origin %p', async (origin) => {
    await using world = startWorld();
    const response = await world.request('/api/health?probe=1', { origin });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe(origin === ORIGIN ? ORIGIN : null);
    expect(await response.json()).toEqual({ service: 'music-gateway', status: 'ok' });
  });

  it('exempts a HEAD of the health check', async () => {
    await using world = startWorld();
    const response = await world.request('/api/health', { method: 'HEAD', origin: null });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('');
  });

  const generation = JSON.stringify({ model: 'm', prompt: 'p', music_length_ms: 3000 });
  const hidden = (host: string) =>
    `POST /api/health?/api/music/generate HTTP/1.1\r\nHost: ${host}\r\n${CREDENTIALS}` +
    `Content-Type: application/json\r\nContent-Length: ${generation.length}\r\n\r\n${generation}`;

  it.each(['gateway.test', 'x', '[::1]', 'gateway.test:80'])(
    'is not evaded by a path in the query of health, with the Host "%s"',
    async (host) => {
      await using world = startWorld();
      const answer = await rawRequest(world.port, hidden(host));
      expect(answer.status).toBe(405);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  // A known defect: with such a Host, request.url is relative, and Elysia finds another path in it than requestPath.
  it.each(['', 'a b', 'user@host', 'x/y'])(
    'is not evaded by a path in the query of health, with the unusable Host "%s"',
    async (host) => {
      await using world = startWorld();
      world.upstream.on('POST /v1/music', () => new Response('audio'));
      const answer = await rawRequest(world.port, hidden(host));
      expect(answer.status).toBeWithin(400, 500);
      expect(world.upstream.calls).toEqual([]);
    },
  );
});

describe('the preflight', () => {
  const preflight = (origin: string | null, method = 'PATCH') =>
    ({
      method: 'OPTIONS',
      origin,
      headers: {
        'access-control-request-method': method,
        'access-control-request-headers': FORWARDED_REQUEST_HEADERS.join(','),
      },
    }) satisfies RequestOptions;

  it.each([
    '/api/auth/idp',
    '/api/auth/session',
    '/api/auth/logout',
    '/api/music/models',
    '/api/music/generate',
    '/api/upstream/v1/music/creations/abc',
    '/api/upstream/v1/music/public/abc/content',
  ])('of %s is answered for an allowed origin', async (path) => {
    await using world = startWorld();
    const response = await world.request(path, preflight(ORIGIN));
    expect(response.status).toBe(204);
    expect(await response.text()).toBe('');
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(response.headers.get('access-control-allow-credentials')).toBe('true');
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])('allows %s', async (method) => {
    await using world = startWorld();
    const response = await world.request('/api/upstream/v1/library', preflight(ORIGIN, method));
    expect(members(response.headers, 'access-control-allow-methods')).toContain(method.toLowerCase());
  });

  it('does not allow methods that are not proxied', async () => {
    await using world = startWorld();
    const response = await world.request('/api/upstream/v1/library', preflight(ORIGIN, 'TRACE'));
    const allowed = members(response.headers, 'access-control-allow-methods');
    expect(allowed.toSorted()).toEqual(['delete', 'get', 'head', 'patch', 'post', 'put']);
  });

  it.each(FORWARDED_REQUEST_HEADERS)('allows the request header %s', async (header) => {
    await using world = startWorld();
    const response = await world.request('/api/music/generate', preflight(ORIGIN));
    expect(members(response.headers, 'access-control-allow-headers')).toContain(header);
  });

  it.each(['authorization', 'cookie', 'via', 'x-forwarded-for', '*'])(
    'does not allow the request header %s',
    async (header) => {
      await using world = startWorld();
      const options = preflight(ORIGIN);
      const response = await world.request('/api/music/generate', {
        ...options,
        headers: { ...options.headers, 'access-control-request-headers': header },
      });
      expect(members(response.headers, 'access-control-allow-headers')).not.toContain(header);
    },
  );

  it('may be kept by the browser for minutes, not for days', async () => {
    await using world = startWorld();
    const response = await world.request('/api/music/generate', preflight(ORIGIN));
    const maxAgeSeconds = Number(response.headers.get('access-control-max-age'));
    expect(maxAgeSeconds).toBeWithin(60, 7201);
  });

  it.each([null, ...LOOK_ALIKES])('names no allowed origin to %p', async (origin) => {
    await using world = startWorld();
    const response = await world.request('/api/music/generate', preflight(origin));
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    expect(members(response.headers, 'vary')).toContain('origin');
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('every answer', () => {
  const generation = { model: 'm', prompt: 'p', music_length_ms: 3000 };
  const signedIn = { cookie: SIGNED_IN };
  const answers: [name: string, path: string, options: RequestOptions, status: number][] = [
    ['health', '/api/health', {}, 200],
    ['a preflight', '/api/music/models', { method: 'OPTIONS' }, 204],
    ['a sign-in', '/api/auth/idp', { json: { code: 'c', code_verifier: 'v'.repeat(43) } }, 200],
    ['a bad sign-in', '/api/auth/idp', { json: {} }, 400],
    ['malformed JSON', '/api/auth/idp', { method: 'POST', body: '{' }, 400],
    ['no session', '/api/auth/session', {}, 200],
    ['a session', '/api/auth/session', signedIn, 200],
    ['a sign-out', '/api/auth/logout', { method: 'POST' }, 200],
    ['models', '/api/music/models', signedIn, 200],
    ['models without a session', '/api/music/models', {}, 401],
    ['a generation', '/api/music/generate', { ...signedIn, json: generation }, 200],
    ['a bad generation', '/api/music/generate', { ...signedIn, json: {} }, 400],
    ['a proxied answer', '/api/upstream/v1/ok', signedIn, 200],
    ['a proxied stream', '/api/upstream/v1/stream', signedIn, 200],
    ['a proxied 204', '/api/upstream/v1/empty', signedIn, 204],
    ['a proxied 304', '/api/upstream/v1/unchanged', signedIn, 304],
    ['a proxied error', '/api/upstream/v1/broken', signedIn, 500],
    ['a proxied refusal', '/api/upstream/v1/paid', { ...signedIn, json: {} }, 402],
    ['public playback', '/api/upstream/v1/music/public/abc', {}, 200],
    ['a proxy without a session', '/api/upstream/v1/ok', {}, 401],
    ['a path outside /v1/', '/api/upstream/v2/ok', signedIn, 404],
    ['an unknown route', '/api/unknown', {}, 404],
    ['a wrong method', '/api/music/models', { method: 'DELETE' }, 405],
    ['a body that is too large', '/api/auth/idp', { method: 'POST', body: 'x'.repeat(2 ** 21 + 1) }, 413],
    ['an upstream that makes no sense', '/api/upstream/v1/not-http', signedIn, 502],
  ];
  const startScripted = () => {
    const world = startWorld();
    // The upstream's own Vary must not replace ours, and its CORS headers would open the gateway.
    const headers = { vary: 'Accept', 'access-control-allow-origin': '*', 'x-content-type-options': 'off' };
    const answer = (status: number) => () => new Response(status === 200 ? 'ok' : null, { status, headers });
    world.upstream
      .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
      .on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token: 'r' }))
      .on('POST /v1/auth/logout', answer(200))
      .on('GET /v1/me', answer(200))
      .on('GET /v1/models', answer(200))
      .on('POST /v1/music', answer(200))
      .on('GET /v1/ok', answer(200))
      .on('GET /v1/empty', answer(204))
      .on('GET /v1/unchanged', answer(304))
      .on('GET /v1/broken', answer(500))
      .on('POST /v1/paid', answer(402))
      .on('GET /v1/music/public/abc', answer(200))
      .on('GET /v1/stream', () => new Response(twoChunks(), { headers }))
      .on('GET /v1/not-http', () => new Response(null, { status: 200, headers: tooManyHeaders() }));
    return world;
  };

  it.each(answers)('to an allowed origin can be read by it: %s', async (_, path, options, status) => {
    await using world = startScripted();
    const response = await world.request(path, options);
    expect(response.status).toBe(status);
    expect(members(response.headers, 'vary')).toContain('origin');
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(response.headers.get('access-control-allow-credentials')).toBe('true');
    expect(members(response.headers, 'access-control-expose-headers')).toContainValues([
      'content-disposition',
      'x-generation-id',
      'x-music-creation-id',
    ]);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    await response.arrayBuffer();
  });

  it.each(answers.filter(([name]) => name !== 'health' && name !== 'a preflight'))(
    'to another origin is a 403 that varies by Origin: %s',
    async (_, path, options) => {
      await using world = startScripted();
      const response = await world.request(path, { ...options, origin: EVIL_ORIGIN });
      expect(response.status).toBe(403);
      expect(members(response.headers, 'vary')).toContain('origin');
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(world.upstream.calls).toEqual([]);
    },
  );
});

async function* twoChunks(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('a');
  yield Buffer.from('b');
}

/** More than Bun's fetch accepts in an answer. */
function tooManyHeaders(): Headers {
  const headers = new Headers();
  for (let index = 0; index < 300; index++) headers.set(`x-filler-${index}`, 'x');
  return headers;
}
