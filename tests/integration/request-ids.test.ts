import { describe, expect, it } from 'bun:test';
import { rawRequest } from '../support/raw-http.ts';
import { ACCESS_ONLY, ORIGIN, SIGNED_IN, startWorld } from '../support/world.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

function startScripted() {
  const world = startWorld();
  world.upstream.on('GET /v1/models', () => Response.json({}));
  return world;
}

describe('X-Request-Id', () => {
  it.each(['a', '~._-', crypto.randomUUID(), 'i'.repeat(64)])(
    'of the client is answered, logged and sent upstream: %s',
    async (id) => {
      await using world = startScripted();
      const headers = { 'x-request-id': id };
      const response = await world.request('/api/music/models', { cookie: ACCESS_ONLY, headers });
      expect(response.headers.get('x-request-id')).toBe(id);
      expect(world.upstream.last('GET /v1/models').headers.get('x-request-id')).toBe(id);
      expect(world.lines).toMatchObject([{ requestId: id }]);
    },
  );

  it.each(['', 'a b', 'a,b', 'é', '"', '{}', '/', 'a=b', 'i'.repeat(65)])(
    'is made when the one of the client is no name: %j',
    async (id) => {
      await using world = startScripted();
      const answer = await rawRequest(
        world.port,
        `GET /api/music/models HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n` +
          `X-Request-Id: ${id}\r\nConnection: close\r\n\r\n`,
      );
      const made = answer.headers.get('x-request-id') ?? '';
      expect(made).toMatch(UUID);
      expect(world.upstream.last('GET /v1/models').headers.get('x-request-id')).toBe(made);
      expect(world.lines).toMatchObject([{ requestId: made }]);
    },
  );

  it('is another one for each request', async () => {
    await using world = startWorld();
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () =>
        (await world.request('/api/health')).headers.get('x-request-id'),
      ),
    );
    expect(new Set(ids).size).toBe(20);
  });

  it.each([
    ['GET', '/api/health', 200],
    ['OPTIONS', '/api/music/models', 204],
    ['GET', '/api/music/models', 401],
    ['GET', '/nothing', 404],
    ['POST', '/api/music/models', 405],
    ['POST', '/api/auth/logout', 200],
  ])('is on the answer to %s %s, a %d', async (method, path, status) => {
    await using world = startWorld();
    const headers = { 'x-request-id': 'mine' };
    const response = await world.request(path, { method, headers });
    expect(response.status).toBe(status);
    expect(response.headers.get('x-request-id')).toBe('mine');
  });

  it('is on the refusal of an origin, and once', async () => {
    await using world = startWorld();
    const response = await world.request('/api/music/models', { origin: 'https://evil.test' });
    expect(response.headers.get('x-request-id')).toMatch(UUID);
  });

  it('may be sent and read by a script on an allowed origin', async () => {
    await using world = startScripted();
    const preflight = await world.request('/api/music/models', {
      method: 'OPTIONS',
      headers: { 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-request-id' },
    });
    expect(preflight.headers.get('access-control-allow-headers')?.split(', ')).toContain('x-request-id');
    const response = await world.request('/api/music/models', { cookie: ACCESS_ONLY });
    expect(response.headers.get('access-control-expose-headers')?.split(', ')).toContain('X-Request-Id');
  });

  it('of the upstream is not passed on', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/any', () => new Response('', { headers: { 'x-request-id': 'theirs' } }));
    const response = await world.request('/api/upstream/v1/any', { cookie: ACCESS_ONLY });
    expect(response.headers.get('x-request-id')).toMatch(UUID);
  });

  it('is the same on all calls that a request makes', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === 'Bearer new' ? Response.json({}) : new Response('', { status: 401 }),
    );
    const pair = { access_token: 'new', refresh_token: 'newer' };
    world.upstream.on('POST /v1/auth/refresh', () => Response.json(pair));
    const headers = { 'x-request-id': 'mine', traceparent: TRACEPARENT, tracestate: 'vendor=opaque' };
    await world.request('/api/auth/session', { cookie: SIGNED_IN, headers });
    expect(world.upstream.calls).toEqual(['GET /v1/me', 'POST /v1/auth/refresh', 'GET /v1/me']);
    for (const received of world.upstream.received) {
      expect(Object.fromEntries(received.headers)).toMatchObject(headers);
    }
  });
});

describe('traceparent', () => {
  it('of the client passes on as it is, with tracestate, and names the request in the log', async () => {
    await using world = startScripted();
    const headers = { traceparent: TRACEPARENT, tracestate: 'vendor=opaque,other=1' };
    await world.request('/api/music/models', { cookie: ACCESS_ONLY, headers });
    expect(Object.fromEntries(world.upstream.last('GET /v1/models').headers)).toMatchObject(headers);
    expect(world.lines).toMatchObject([{ traceId: '0af7651916cd43dd8448eb211c80319c' }]);
  });

  it('is made when Connection names it, because it was for one hop alone', async () => {
    await using world = startScripted();
    const lines = [
      'GET /api/music/models HTTP/1.1',
      `Host: x\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}`,
      `Connection: close, Traceparent, x-request-id\r\nTraceparent: ${TRACEPARENT}\r\nX-Request-Id: mine`,
    ];
    expect((await rawRequest(world.port, `${lines.join('\r\n')}\r\n\r\n`)).status).toBe(200);
    const sent = world.upstream.last('GET /v1/models').headers;
    expect(sent.get('traceparent')).toEndWith('-00');
    expect(sent.get('x-request-id')).not.toBe('mine');
  });

  it.each([
    '',
    'no',
    TRACEPARENT.toUpperCase(),
    TRACEPARENT.replace('00-', 'ff-'),
    `${TRACEPARENT}-extra`,
    TRACEPARENT.slice(0, -1),
    '00-00000000000000000000000000000000-b7ad6b7169203331-01',
    '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
  ])('is made when there is no valid one, and tracestate is dropped: %j', async (traceparent) => {
    await using world = startScripted();
    const headers = { traceparent, tracestate: 'vendor=opaque' };
    await world.request('/api/music/models', { cookie: ACCESS_ONLY, headers });
    const sent = world.upstream.last('GET /v1/models').headers;
    expect(sent.get('traceparent')).toMatch(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/);
    expect(sent.get('tracestate')).toBeNull();
    expect(world.lines).toMatchObject([{ traceId: sent.get('traceparent')?.split('-')[1] }]);
  });

  it.each(['é=1', `v=${'x'.repeat(511)}`])(
    'passes on without a tracestate that is none: %j',
    async (tracestate) => {
      await using world = startScripted();
      await rawRequest(
        world.port,
        `GET /api/music/models HTTP/1.1\r\nHost: gateway.test\r\nOrigin: ${ORIGIN}\r\nCookie: ${ACCESS_ONLY}\r\n` +
          `Traceparent: ${TRACEPARENT}\r\nTracestate: ${tracestate}\r\nConnection: close\r\n\r\n`,
      );
      const sent = world.upstream.last('GET /v1/models').headers;
      expect(sent.get('traceparent')).toBe(TRACEPARENT);
      expect(sent.get('tracestate')).toBeNull();
    },
  );
});
