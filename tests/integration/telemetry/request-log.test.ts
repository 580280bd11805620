import { afterEach, beforeEach, describe, expect, it } from 'bun:test';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { recordLog } from '../../support/recorded-log.ts';
import {
  ACCESS_ONLY,
  ORIGIN,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  testSettings,
  type World,
} from '../../support/world.ts';

const GENERATE = { model: 'm', prompt: 'p', music_length_ms: 3000 };
const PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };
const NO_SERVER = 'http://127.0.0.1:9';

/** The one line that was written. */
function onlyLine({ lines }: World) {
  expect(lines).toHaveLength(1);
  return lines[0] ?? {};
}

describe('the log line of a request', () => {
  let world: World;
  beforeEach(() => {
    world = startWorld();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  it('has these fields, and no others', async () => {
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
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', () => Response.json(PAIR));
    await world.request('/api/auth/idp', { json: { code: 'c', code_verifier: 'v'.repeat(43) } });
    const upstream = [
      { call: 'token', outcome: 200 },
      { call: 'sign-in', outcome: 200 },
    ];
    expect(onlyLine(world)).toMatchObject({ upstream });
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
  ])('has for %s %s the route %s and the level %s', async (method, path, route, level) => {
    await world.request(path, { method });
    expect(onlyLine(world)).toMatchObject({ method, route, level });
    expect(onlyLine(world)).not.toContainKey('upstream');
    expect(JSON.stringify(world.lines)).not.toContain('secret');
  });

  it('calls a method that HTTP does not define "other"', async () => {
    await world.request('/api/health', { method: 'PROPFIND' });
    expect(onlyLine(world)).toMatchObject({ method: 'other', route: '/api/health', status: 405 });
  });

  it('has the route of a load balancer’s request without a host', async () => {
    await rawRequest(world.port, 'GET /api/health HTTP/1.0\r\nConnection: close\r\n\r\n');
    expect(onlyLine(world)).toMatchObject({ route: '/api/health', status: 200 });
  });

  it('says why the gateway has refused', async () => {
    await world.request('/api/music/models', { origin: 'https://evil.test' });
    await world.request('/api/music/models');
    await world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: { ...GENERATE, prompt: '' } });
    expect(world.lines).toMatchObject([
      { route: '/api/music/models', status: 403, reason: 'originNotAllowed' },
      { route: '/api/music/models', status: 401, reason: 'notSignedIn' },
      { route: '/api/music/generate', status: 400, reason: 'promptInvalid' },
    ]);
  });

  const check = () => world.request('/api/auth/session', { cookie: SIGNED_IN });
  const refreshWith = (respond: () => Response | Promise<Response>) =>
    world.upstream
      .on('GET /v1/me', ({ headers }) =>
        headers.get('authorization') === 'Bearer access-2'
          ? Response.json({})
          : new Response('', { status: 401 }),
      )
      .on('POST /v1/auth/refresh', respond);

  it('says that a session was renewed, and that a later request with the spent token replayed it', async () => {
    refreshWith(() => Response.json(PAIR));
    await check();
    await check();
    expect(world.lines.map(({ refresh }) => refresh)).toEqual(['renewed', 'replayed']);
    expect(world.lines[0]?.['upstream']).toMatchObject([
      { call: 'me', outcome: 401 },
      { call: 'refresh', outcome: 200 },
      { call: 'me', outcome: 200 },
    ]);
  });

  it('says that requests shared one refresh', async () => {
    const response = Promise.withResolvers<Response>();
    refreshWith(() => response.promise);
    const checks = [check(), check(), check()];
    await world.upstream.arrived('GET /v1/me', 3);
    await world.upstream.arrived('POST /v1/auth/refresh');
    response.resolve(Response.json(PAIR));
    await Promise.all(checks);
    expect(world.lines.map(({ refresh }) => refresh).toSorted()).toEqual(['renewed', 'shared', 'shared']);
  });

  it('says that a refresh was rejected', async () => {
    refreshWith(() => new Response('', { status: 400 }));
    await check();
    expect(onlyLine(world)).toMatchObject({ level: 'info', refresh: 'rejected', reason: 'sessionEnded' });
  });
});

describe('the log line of a failed request', () => {
  it('is a warning when no server is there, and names the innermost error', async () => {
    await using world = startWorld({ UPSTREAM_URL: NO_SERVER });
    await world.request('/api/music/models', { cookie: ACCESS_ONLY });
    await world.request('/api/auth/session', { cookie: REFRESH_ONLY });
    const failure = { level: 'warn', status: 502, cause: 'TypeError ECONNREFUSED' };
    const upstream = [{ call: 'models', outcome: 'connection_refused' }];
    expect(world.lines).toMatchObject([
      { ...failure, reason: 'upstreamUnreachable', upstream },
      { ...failure, refresh: 'unreachable' },
    ]);
  });

  it('says that a refresh had no response in time', async () => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '1000' });
    world.upstream
      .on('GET /v1/me', () => new Response('', { status: 401 }))
      .on('POST /v1/auth/refresh', () => new Promise(() => {}));
    await world.request('/api/auth/session', { cookie: SIGNED_IN });
    const upstream = [{ outcome: 401 }, { call: 'refresh', outcome: 'http_response_timeout' }];
    expect(onlyLine(world)).toMatchObject({ status: 401, refresh: 'unreachable', upstream });
  });

  it('is an error for a fault of the gateway, with its place and without its message', async () => {
    const { logger, lines } = recordLog();
    const settings = testSettings({ UPSTREAM_URL: NO_SERVER, IDP_URL: NO_SERVER });
    const gateway = createGateway({ settings, logger });
    gateway.get('/api/faulty', function handle() {
      throw new RangeError('a secret\n    at nowhere');
    });
    const request = new Request('http://gateway.test/api/faulty', { headers: { origin: ORIGIN } });
    expect((await gateway.handle(request)).status).toBe(500);
    expect(lines).toMatchObject([{ level: 'error', route: '/api/faulty', reason: 'internalError' }]);
    expect(lines[0]?.['cause']).toMatch(/^RangeError at handle \(.*request-log\.test\.ts:\d+:\d+\)$/);
  });
});
