import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { PROXIED_METHODS } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, ORIGIN, SIGNED_IN } from '../../support/world.ts';

const ROUTES: [path: string, allow: string][] = [
  ['/api/health', 'GET, HEAD'],
  ['/api/auth/idp', 'POST'],
  ['/api/auth/session', 'GET, HEAD'],
  ['/api/auth/logout', 'POST'],
  ['/api/music/models', 'GET, HEAD'],
  ['/api/music/generate', 'POST'],
];
const world = sharedWorld();

async function expectRefusal(method: string, path: string, expected: 404 | 405, cookie = SIGNED_IN) {
  const lines = ['Content-Length: 0'];
  const { status, headers, body } = await rawCall(world, `${method} ${path}`, { lines, cookie });
  const message = messages.en[expected === 404 ? 'notFound' : 'methodNotAllowed'];
  expect(status).toBe(expected);
  if (method === 'HEAD') expect(body).toBe('');
  else expect(JSON.parse(body)).toEqual({ error: { message } });
  expect(headers.get('access-control-allow-origin')).toBe(ORIGIN);
  expect(headers.get('cache-control')).toBe('no-store');
  expect(headers.getSetCookie()).toEqual([]);
  expect(world.upstream.calls).toEqual([]);
  return headers;
}

describe.each(ROUTES)('%s', (path, allow) => {
  const others = [...PROXIED_METHODS, 'TRACE', 'CONNECT', 'PROPFIND'].filter(
    (method) => !allow.split(', ').includes(method),
  );

  it.each(others)('refuses %s, and names its methods', async (method) => {
    const headers = await expectRefusal(method, path, 405);
    expect(headers.get('allow')).toBe(allow);
  });

  it.each([
    ...[`${path}/`, `/${path}`, `${path}x`, `${path}%20`, `${path};x=1`, path.toUpperCase()],
    ...[path.replace('/api', '/Api'), path.replace('/api', ''), path.replace('a', '%61')],
  ])('is not found as %s', async (other) => {
    for (const method of ['GET', 'POST']) await expectRefusal(method, other, 404);
  });
});

describe('a method that the route does not have', () => {
  it('is refused before the body is read', async () => {
    const headers = { 'content-type': 'application/json' };
    const call = { method: 'POST', cookie: SIGNED_IN, headers, body: '{ not JSON' };
    const response = await world.request('/api/music/models', call);
    expect(await envelopeMessage(response, 405)).toBe(messages.en.methodNotAllowed);
  });

  it.each(['get', 'FOO', 'G\xcbT', 'G ET'])('is not taken for another: %s', async (method) => {
    const response = await rawCall(world, `${method} /api/music/models`);
    // Bun closes the connection without a response, or refuses the request itself.
    expect(response.status).toBeOneOf([0, 400, 405, 505]);
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('a route that does not exist', () => {
  it.each([
    ...['/', '/api', '/api/', '/favicon.ico', '/index.html', '/robots.txt', '/.env', '/api/unknown'],
    ...['/api/auth', '/api/auth/', '/api/auth/unknown', '/api/auth/idp/more', '/api/music'],
    ...['/api/music/unknown', '/api/upstream', '/v1/me', '/auth/session', '/constructor', '/__proto__'],
    ...['/api/constructor', '/api/*', '/*', '/metrics', '/api/metrics'],
  ])('is a 404 with the envelope, with a session and without: %s', async (path) => {
    for (const method of PROXIED_METHODS) {
      for (const cookie of [SIGNED_IN, '']) {
        const headers = await expectRefusal(method, path, 404, cookie);
        expect(headers.has('allow')).toBe(false);
      }
    }
  });

  it('is not repeated in the response', async () => {
    const response = await world.request('/api/<script>alert(1)</script>?secret=code');
    expect(await envelopeMessage(response, 404)).toBe(messages.en.notFound);
    expect(world.log).toEqual([]);
  });
});
