import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { GENERATE, PROXIED_METHODS, PROXIED_PATH, scriptRoutes } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { ORIGIN, SIGNED_IN, startWorld } from '../../support/world.ts';

const HEALTHY = '{"service":"music-gateway","status":"ok"}';
const HEALTH = '/api/health';
const world = sharedWorld();
scriptRoutes(world);

async function expectRefusal(method: string, path: string, allow: string | null, cookie = SIGNED_IN) {
  const call = { lines: ['Content-Length: 0'], cookie };
  const { status, headers, body } = await rawCall(world, `${method} ${path}`, call);
  const message = messages.en[allow === null ? 'notFound' : 'methodNotAllowed'];
  expect([method, path, status]).toEqual([method, path, allow === null ? 404 : 405]);
  expect(body).toBe(method === 'HEAD' ? '' : JSON.stringify({ error: { message } }));
  expect([headers.get('allow'), headers.get('cache-control')]).toEqual([allow, 'no-store']);
  expect([headers.getSetCookie(), world.upstream.calls]).toEqual([[], []]);
}

describe.each([
  [HEALTH, 'GET, HEAD'],
  ['/api/auth/idp', 'POST'],
  ['/api/auth/session', 'GET, HEAD'],
  ['/api/auth/logout', 'POST'],
  ['/api/music/models', 'GET, HEAD'],
  ['/api/music/generate', 'POST'],
])('%s', (path, allow) => {
  it('refuses other methods, and names its own', async () => {
    for (const method of [...PROXIED_METHODS, 'TRACE', 'CONNECT', 'PROPFIND', 'QUERY']) {
      if (!allow.split(', ').includes(method)) await expectRefusal(method, path, allow);
    }
  });

  it('is not found under another spelling', async () => {
    const spellings = [`${path}/`, `/${path}`, `${path}x`, `${path}%20`, `${path};x=1`, path.toUpperCase()];
    for (const other of [...spellings, path.replace('/api', ''), path.replace('a', '%61')]) {
      for (const method of ['GET', 'POST']) await expectRefusal(method, other, null);
    }
  });
});

describe('a method that a route does not have', () => {
  it('is refused by the proxy too', async () => {
    for (const method of ['TRACE', 'CONNECT', 'PROPFIND']) {
      await expectRefusal(method, PROXIED_PATH, PROXIED_METHODS.join(', '));
    }
  });

  it.each(['get', 'FOO', 'G\xcbT', 'G ET'])('is not taken for another: %s', async (method) => {
    // Bun closes the connection without a response, or refuses the request itself.
    expect((await rawCall(world, `${method} /api/music/models`)).status).toBeOneOf([0, 400, 405, 505]);
    expect(world.upstream.calls).toEqual([]);
  });
});

it('a route that does not exist is a 404 with the envelope, with a session and without', async () => {
  const paths = `/ /api /api/ /favicon.ico /.env /api/unknown /api/auth /api/auth/idp/more /api/music /api/upstream
    /v1/me /constructor /__proto__ /api/constructor /api/* /metrics /api/<script>`;
  for (const path of paths.split(/\s+/)) {
    for (const method of PROXIED_METHODS)
      await expectRefusal(method, path, null, method === 'GET' ? '' : SIGNED_IN);
  }
});

describe('GET /api/health', () => {
  it('names the service that is configured', async () => {
    await using named = startWorld({ SERVICE_NAME: 'my-gateway' });
    const response = await named.request(HEALTH, { origin: null });
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect([response.status, await response.json()]).toEqual([200, { service: 'my-gateway', status: 'ok' }]);
  });

  it.each([null, 'http://evil.test', ORIGIN])('responds to the origin %p', async (origin) => {
    for (const method of ['GET', 'HEAD']) {
      const response = await world.request(`${HEALTH}?probe=1`, { method, origin });
      expect(response.status).toBe(200);
      expect(await response.text()).toBe(method === 'GET' ? HEALTHY : '');
      expect(response.headers.get('access-control-allow-origin')).toBe(origin === ORIGIN ? ORIGIN : null);
    }
  });

  it.each([
    ['', 'HTTP/1.0', ''],
    ['', 'HTTP/1.1', 'Host: \r\n'],
    ...['?', '?x=/../../y', '?/'].map((query) => [query, 'HTTP/1.1', 'Host: lb\r\n']),
  ])('responds to a load balancer: %j %s %j', async (query = '', version = '', host = '') => {
    const call = { version, host, origin: '', cookie: '' };
    const { status, body } = await rawCall(world, `GET ${HEALTH}${query}`, call);
    expect([status, body]).toEqual([200, HEALTHY]);
  });

  it('is the only request without an origin rule', async () => {
    for (const path of ['/api/health/', '/API/HEALTH', '/api/health%2f', '/api/healthy']) {
      expect((await world.request(path, { origin: null })).status).toBe(403);
    }
    expect((await world.request(HEALTH, { method: 'POST', origin: null })).status).toBe(405);
  });

  // A Host that makes no address makes request.url relative, and Elysia would find another path in that.
  it('does not open the path in its query, whatever the Host', async () => {
    const body = JSON.stringify(GENERATE.options.json);
    const lines = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    for (const name of ['gateway.test', '[::1]', 'gateway.test:80', '', 'a b', 'user@host', 'x/y']) {
      const call = { host: `Host: ${name}\r\n`, origin: '', lines, body };
      const { status } = await rawCall(world, `POST ${HEALTH}?${GENERATE.path}`, call);
      expect([name, status]).toEqual([name, /^[^ @/]+$/.test(name) ? 405 : 400]);
      expect(world.upstream.calls).toEqual([]);
    }
  });
});
