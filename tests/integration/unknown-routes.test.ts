import { describe, expect, it } from 'bun:test';
import { type RawAnswer, rawRequest } from '../support/raw-http.ts';
import { envelopeMessage, ORIGIN, SIGNED_IN, startWorld, type World } from '../support/world.ts';

const ROUTES: [path: string, allow: string][] = [
  ['/api/health', 'GET, HEAD'],
  ['/api/auth/idp', 'POST'],
  ['/api/auth/session', 'GET, HEAD'],
  ['/api/auth/logout', 'POST'],
  ['/api/music/models', 'GET, HEAD'],
  ['/api/music/generate', 'POST'],
];
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** What fetch does not send. */
const RAW_METHODS = ['TRACE', 'CONNECT', 'PROPFIND'];

function rawCall(world: World, method: string, path: string): Promise<RawAnswer> {
  return rawRequest(
    world.port,
    `${method} ${path} HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\n` +
      'Content-Length: 0\r\nConnection: close\r\n\r\n',
  );
}

const NOT_ALLOWED = ROUTES.flatMap(([path, allow]) =>
  METHODS.filter((method) => !allow.split(', ').includes(method)).map((method): [string, string, string] => [
    method,
    path,
    allow,
  ]),
);

describe('a method that a route does not have', () => {
  it.each(NOT_ALLOWED)('is refused: %s %s', async (method, path, allow) => {
    await using world = startWorld();
    const response = await world.request(path, { method, cookie: SIGNED_IN });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe(allow);
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.getSetCookie()).toEqual([]);
    if (method === 'HEAD') expect(await response.text()).toBe('');
    else
      expect(await envelopeMessage(response, 405)).toBe('This address does not support the request method.');
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(
    ROUTES.flatMap(([path, allow]) =>
      RAW_METHODS.map((method): [string, string, string] => [method, path, allow]),
    ),
  )('is refused: %s %s', async (method, path, allow) => {
    await using world = startWorld();
    const answer = await rawCall(world, method, path);
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe(allow);
    expect(JSON.parse(answer.body)).toEqual({
      error: { message: 'This address does not support the request method.' },
    });
    expect(world.upstream.calls).toEqual([]);
  });

  it('is refused by health without an Origin', async () => {
    await using world = startWorld();
    const response = await world.request('/api/health', { method: 'POST', origin: null });
    expect(await envelopeMessage(response, 405)).toBe('This address does not support the request method.');
    expect(response.headers.get('allow')).toBe('GET, HEAD');
  });

  it('is refused before the body is looked at', async () => {
    await using world = startWorld();
    const response = await world.request('/api/music/models', {
      method: 'POST',
      cookie: SIGNED_IN,
      headers: { 'content-type': 'application/json' },
      body: '{ not JSON',
    });
    expect(await envelopeMessage(response, 405)).toBe('This address does not support the request method.');
  });

  it.each(['get', 'FOO', 'G\xcbT', 'G ET'])(
    'that no server has is not taken for another: %s',
    async (method) => {
      await using world = startWorld();
      const answer = await rawCall(world, method, '/api/music/models');
      // Bun closes the connection without an answer, or says that the request is none.
      expect(answer.status).toBeOneOf([0, 400, 405, 505]);
      expect(world.upstream.calls).toEqual([]);
    },
  );
});

describe('a route that is not there', () => {
  it.each([
    '/',
    '/api',
    '/api/',
    '/favicon.ico',
    '/index.html',
    '/robots.txt',
    '/.env',
    '/api/unknown',
    '/api/auth',
    '/api/auth/',
    '/api/auth/unknown',
    '/api/auth/idp/more',
    '/api/music',
    '/api/music/unknown',
    '/api/upstream',
    '/v1/me',
    '/auth/session',
    '/constructor',
    '/__proto__',
    '/api/constructor',
    '/api/*',
    '/*',
    ...ROUTES.flatMap(([path]) => [
      `${path}/`,
      path.toUpperCase(),
      path.replace('/api', '/Api'),
      `/${path}`,
      `${path}x`,
      `${path}%20`,
      `${path};x=1`,
      path.replace('/api', ''),
      path.replace('a', '%61'),
    ]),
  ])('is a 404 in the envelope: %s', async (path) => {
    await using world = startWorld();
    for (const method of ['GET', 'POST']) {
      // By raw socket: fetch tidies the path.
      const answer = await rawCall(world, method, path);
      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.body)).toEqual({ error: { message: 'There is nothing at this address.' } });
      expect(answer.headers.get('allow')).toBeNull();
      expect(answer.headers.get('access-control-allow-origin')).toBe(ORIGIN);
      expect(answer.headers.get('cache-control')).toBe('no-store');
    }
    expect(world.upstream.calls).toEqual([]);
  });

  it.each(METHODS)('is a 404 for %s, with a session or without', async (method) => {
    await using world = startWorld();
    for (const cookie of [SIGNED_IN, '']) {
      const response = await world.request('/api/unknown', { method, cookie });
      expect(response.status).toBe(404);
    }
    expect(world.upstream.calls).toEqual([]);
  });

  it('is not echoed', async () => {
    await using world = startWorld();
    const response = await world.request('/api/<script>alert(1)</script>?secret=code');
    const message = await envelopeMessage(response, 404);
    expect(message).not.toContain('script');
    expect(message).not.toContain('secret');
    expect(world.log).toEqual([]);
  });
});

describe('a route that is there', () => {
  it.each(['/api/health?', '/api/health?x=1', '/api/health?x=/../../y', '/api/health?/'])(
    'is found whatever its query: %s',
    async (path) => {
      await using world = startWorld();
      const answer = await rawCall(world, 'GET', path);
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.body)).toEqual({ service: 'music-gateway', status: 'ok' });
    },
  );

  it.each(['/api/health', '/api/auth/session'])(
    'answers HEAD like GET, without the body: %s',
    async (path) => {
      await using world = startWorld();
      const get = await world.request(path);
      const head = await world.request(path, { method: 'HEAD' });
      expect(head.status).toBe(200);
      expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'));
      expect(await head.text()).toBe('');
      expect(world.upstream.calls).toEqual([]);
    },
  );
});
