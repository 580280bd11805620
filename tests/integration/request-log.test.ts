import { describe, expect, it } from 'bun:test';
import { createGateway } from '../../src/gateway/gateway.ts';
import { rawRequest } from '../support/raw-http.ts';
import { recordLog } from '../support/recorded-log.ts';
import { ACCESS_ONLY, ORIGIN, SIGNED_IN, startWorld, testSettings, type World } from '../support/world.ts';

const GENERATE = { model: 'm', prompt: 'p', music_length_ms: 3000 };
const PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };

/** The one line that was written. */
function onlyLine({ lines }: World) {
  expect(lines).toHaveLength(1);
  return lines[0] ?? {};
}

describe('the line of a request', () => {
  it('holds these fields, and no others', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/models', () => Response.json({ data: [] }));
    await (await world.request('/api/music/models', { cookie: SIGNED_IN })).text();
    expect(onlyLine(world)).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      method: 'GET',
      route: '/api/music/models',
      status: 200,
      durationMs: expect.any(Number),
      headMs: expect.any(Number),
      bytes: '{"data":[]}'.length,
      upstream: [{ call: 'models', outcome: 200, ms: expect.any(Number) }],
      msg: 'request',
    });
  });

  it('names every call to other servers, in their order', async () => {
    await using world = startWorld();
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', () => Response.json(PAIR));
    const json = { code: 'c', code_verifier: 'v'.repeat(43) };
    await world.request('/api/auth/idp', { json });
    expect(onlyLine(world)['upstream']).toMatchObject([
      { call: 'token', outcome: 200 },
      { call: 'sign-in', outcome: 200 },
    ]);
  });

  it.each([
    ['GET', '/api/health', '/api/health', 'debug'],
    ['GET', '/api/auth/session', '/api/auth/session', 'info'],
    ['GET', '/api/upstream/v1/library/a-secret?q=another', '/api/upstream/*', 'info'],
    ['GET', '/api/upstream/v1', '/api/upstream/*', 'info'],
    ['GET', '/api/upstreams', 'unmatched', 'info'],
    ['DELETE', '/api/music/models', '/api/music/models', 'info'],
    ['GET', '/a-secret', 'unmatched', 'info'],
    ['OPTIONS', '/api/music/models', '/api/music/models', 'debug'],
    ['OPTIONS', '/anywhere', 'unmatched', 'debug'],
  ])('has for %s %s the route %s, and is for %s', async (method, path, route, level) => {
    await using world = startWorld();
    await world.request(path, { method });
    expect(onlyLine(world)).toMatchObject({ method, route, level });
    expect(JSON.stringify(world.lines)).not.toContain('secret');
  });

  it('names no method that HTTP does not', async () => {
    await using world = startWorld();
    await world.request('/api/health', { method: 'PROPFIND' });
    expect(onlyLine(world)).toMatchObject({ method: 'other', route: '/api/health', status: 405 });
  });

  it('knows the route of a load balancer that names no host', async () => {
    await using world = startWorld();
    await rawRequest(world.port, 'GET /api/health HTTP/1.0\r\nConnection: close\r\n\r\n');
    expect(onlyLine(world)).toMatchObject({ route: '/api/health', status: 200 });
  });

  it('says why the gateway has refused', async () => {
    await using world = startWorld();
    await world.request('/api/music/models', { origin: 'https://evil.test' });
    await world.request('/api/music/models');
    await world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: { ...GENERATE, prompt: '' } });
    expect(world.lines).toMatchObject([
      { route: '/api/music/models', status: 403, reason: 'originNotAllowed' },
      { route: '/api/music/models', status: 401, reason: 'notSignedIn' },
      { route: '/api/music/generate', status: 400, reason: 'promptInvalid' },
    ]);
  });

  it('is a warning when the upstream fails, and says by what name', async () => {
    await using world = startWorld({ UPSTREAM_URL: 'http://127.0.0.1:9' });
    await world.request('/api/music/models', { cookie: ACCESS_ONLY });
    expect(onlyLine(world)).toMatchObject({
      level: 'warn',
      status: 502,
      reason: 'upstreamUnreachable',
      cause: 'TypeError ECONNREFUSED',
      upstream: [{ call: 'models', outcome: 'connection_refused' }],
    });
  });

  it('is an error for a fault of the gateway: where it was, and not what it said', async () => {
    const { logger, lines } = recordLog();
    const settings = testSettings({ UPSTREAM_URL: 'http://127.0.0.1:9', IDP_URL: 'http://127.0.0.1:9' });
    const gateway = createGateway({ settings, logger });
    gateway.get('/api/faulty', function handle() {
      throw new RangeError('a secret\n    at nowhere');
    });
    const response = await gateway.handle(
      new Request('http://gateway.test/api/faulty', { headers: { origin: ORIGIN } }),
    );
    expect(response.status).toBe(500);
    expect(lines).toMatchObject([{ level: 'error', route: '/api/faulty', reason: 'internalError' }]);
    expect(lines[0]?.['cause']).toMatch(/^RangeError at handle \(.*request-log\.test\.ts:\d+:\d+\)$/);
  });
});
