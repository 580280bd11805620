import { expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { PROXIED_METHODS, PROXIED_PATH, scriptRoutes } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { ORIGIN, SIGNED_IN } from '../../support/world.ts';

const HEALTH = '/api/health';
const ODD_METHODS = ['TRACE', 'CONNECT', 'PROPFIND', 'QUERY'];
const UNKNOWN = `/ /api /api/ /favicon.ico /.env /api/unknown /api/auth /api/auth/idp/more /api/health/ /api/auth/session/ /api/music /api/upstream
  /v1/me /constructor /__proto__ /api/constructor /api/* /metrics /api/<script> /api/upstream/ /api/upstream/v1
  /api/upstream/v1/..%2fadmin /api/upstream/v2/library /api/upstream/?/v1/library`;

const world = sharedWorld({ SERVICE_NAME: 'my-gateway' });
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

it.each([
  [HEALTH, 'GET, HEAD'],
  ['/api/auth/idp', 'POST'],
  ['/api/auth/session', 'GET, HEAD'],
  ['/api/auth/logout', 'POST'],
  ['/api/music/models', 'GET, HEAD'],
  ['/api/music/generate', 'POST'],
  [PROXIED_PATH, PROXIED_METHODS.join(', ')],
])('%s refuses other methods than %s, and has no other spelling', async (path, allow) => {
  const refused = [...PROXIED_METHODS, ...ODD_METHODS].filter(
    (method) => !allow.split(', ').includes(method),
  );
  for (const method of refused) await expectRefusal(method, path, allow);
  for (const other of [`/${path}`, path.toUpperCase(), path.replace('a', '%61')])
    await expectRefusal('POST', other, null);
});

it('a route that does not exist is a 404 with the envelope, before session and method are checked', async () => {
  for (const path of UNKNOWN.split(/\s+/))
    for (const method of ['GET', 'POST', 'PROPFIND']) await expectRefusal(method, path, null, '');
});

it('GET /api/health names the configured service to every load balancer and origin', async () => {
  for (const origin of ['', 'Origin: http://evil.test\r\n', `Origin: ${ORIGIN}\r\n`]) {
    const { status, headers, body } = await rawCall(world, `GET ${HEALTH}?probe=/`, { origin, cookie: '' });
    expect([status, body]).toEqual([200, '{"service":"my-gateway","status":"ok"}']);
    expect(headers.get('content-type')).toStartWith('application/json');
    expect(headers.get('access-control-allow-origin')).toBe(origin.includes(ORIGIN) ? ORIGIN : null);
  }
  for (const call of [{ host: '', version: 'HTTP/1.0' }, { host: 'Host: \r\n' }])
    expect((await rawCall(world, `GET ${HEALTH}`, { ...call, origin: '', cookie: '' })).status).toBe(200);
});

it('any other request without a Host is refused, because the router would find a path in the query', async () => {
  for (const path of ['/api/music/models', '/aaaaaa/api/music/models?://b/api/health']) {
    const { status, body } = await rawCall(world, `GET ${path}`, { host: '', version: 'HTTP/1.0' });
    expect([status, body]).toEqual([400, JSON.stringify({ error: { message: messages.en.requestInvalid } })]);
  }
  expect(world.upstream.calls).toEqual([]);
});
