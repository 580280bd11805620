import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { TRACK } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, ORIGIN, startWorld } from '../../support/world.ts';

const HEALTHY = { service: 'music-gateway', status: 'ok' };

describe('GET /api/health', () => {
  const world = sharedWorld();
  world.upstream.on('POST /v1/music', () => new Response('audio'));

  it('names the service that is configured', async () => {
    await using named = startWorld({ SERVICE_NAME: 'my-gateway' });
    const response = await named.request('/api/health', { origin: null });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(await response.json()).toEqual({ service: 'my-gateway', status: 'ok' });
  });

  it.each([null, 'null', 'http://evil.test', ORIGIN])('responds to the origin %p', async (origin) => {
    const headers = { 'x-request-id': 'mine' };
    const response = await world.request('/api/health?probe=1', { origin, headers });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual(HEALTHY);
    expect(response.headers.get('access-control-allow-origin')).toBe(origin === ORIGIN ? ORIGIN : null);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('x-request-id')).toBe('mine');
    const head = await world.request('/api/health', { method: 'HEAD', origin });
    expect(head.status).toBe(200);
    expect(head.headers.get('content-type')).toBe(response.headers.get('content-type'));
    expect(await head.text()).toBe('');
  });

  it.each([
    ['', 'HTTP/1.0', ''],
    ['', 'HTTP/1.1', 'Host: \r\n'],
    ['', 'HTTP/1.1', 'Host: lb\r\n'],
    ...['?', '?x=1', '?x=/../../y', '?/'].map((query) => [query, 'HTTP/1.1', 'Host: lb\r\n']),
  ])('responds to a load balancer: %j %s %j', async (query = '', version = '', host = '') => {
    const call = { version, host, origin: '', cookie: '' };
    const response = await rawCall(world, `GET /api/health${query}`, call);
    expect(response.status).toBe(200);
    expect(JSON.parse(response.body)).toEqual(HEALTHY);
  });

  it('refuses another method without an Origin', async () => {
    const response = await world.request('/api/health', { method: 'POST', origin: null });
    expect(await envelopeMessage(response, 405)).toBe(messages.en.methodNotAllowed);
    expect(response.headers.get('allow')).toBe('GET, HEAD');
  });

  it.each(['/api/health/', '/API/HEALTH', '/api/health%2f', '/api/healthy'])(
    'is the only path without an origin rule: %s is refused',
    async (path) => {
      const response = await world.request(path, { origin: null });
      expect(await envelopeMessage(response, 403)).toBe(messages.en.originNotAllowed);
    },
  );

  const body = JSON.stringify(TRACK);
  const lines = ['Content-Type: application/json', `Content-Length: ${body.length}`];

  it.each(['gateway.test', 'x', '[::1]', 'gateway.test:80', '', 'a b', 'user@host', 'x/y'])(
    'does not open the path in its query, with the Host "%s"',
    async (name) => {
      const host = `Host: ${name}\r\n`;
      const call = { host, origin: '', lines, body };
      const response = await rawCall(world, 'POST /api/health?/api/music/generate', call);
      // A Host that makes no address makes request.url relative, and Elysia would find another path in that.
      if (/^[^ @/]+$/.test(name)) expect(response.status).toBe(405);
      else expect(response.status).toBeWithin(400, 500);
      expect(world.upstream.calls).toEqual([]);
    },
  );
});
