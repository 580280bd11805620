import { describe, expect, it } from 'bun:test';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { ACCESS_ONLY, SIGNED_IN } from '../../support/world.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

const world = sharedWorld();
world.upstream
  .on('GET /v1/models', () => Response.json({}))
  .on('GET /v1/any', () => new Response('', { headers: { 'x-request-id': 'theirs' } }));
const sentHeaders = () => world.upstream.last('GET /v1/models').headers;

// Which responses have the header: every-route.test.ts.
describe('X-Request-Id', () => {
  it.each(['a', '~._-', crypto.randomUUID(), 'i'.repeat(64)])(
    'of the client is on the response, in the log and on the call: %s',
    async (id) => {
      const headers = { 'x-request-id': id };
      const response = await world.request('/api/music/models', { cookie: ACCESS_ONLY, headers });
      expect(response.headers.get('x-request-id')).toBe(id);
      expect(sentHeaders().get('x-request-id')).toBe(id);
      await world.line({ requestId: id });
    },
  );

  it.each(['', 'a b', 'a,b', 'é', '"', '{}', '/', 'a=b', 'i'.repeat(65)])(
    'is replaced when the client sends %j',
    async (id) => {
      const lines = [`X-Request-Id: ${id}`];
      const response = await rawCall(world, 'GET /api/music/models', { lines });
      const made = response.headers.get('x-request-id') ?? '';
      expect(made).toMatch(UUID);
      expect(sentHeaders().get('x-request-id')).toBe(made);
      await world.line({ requestId: made });
    },
  );

  it('differs between requests', async () => {
    const responses = Array.from({ length: 20 }, () => world.request('/api/health'));
    const ids = (await Promise.all(responses)).map(({ headers }) => headers.get('x-request-id'));
    expect(new Set(ids).size).toBe(20);
  });

  it('of the upstream does not pass', async () => {
    const response = await world.request('/api/upstream/v1/any', { cookie: ACCESS_ONLY });
    expect(response.headers.get('x-request-id')).toMatch(UUID);
  });

  it('and the trace context are the same on every call of a request', async () => {
    world.upstream
      .on('GET /v1/me', ({ headers }) =>
        headers.get('authorization') === 'Bearer new' ? Response.json({}) : new Response('', { status: 401 }),
      )
      .on('POST /v1/auth/refresh', () => Response.json({ access_token: 'new', refresh_token: 'newer' }));
    const headers = { 'x-request-id': 'mine', traceparent: TRACEPARENT, tracestate: 'vendor=opaque' };
    await world.request('/api/auth/session', { cookie: SIGNED_IN, headers });
    expect(world.upstream.calls).toEqual(['GET /v1/me', 'POST /v1/auth/refresh', 'GET /v1/me']);
    for (const received of world.upstream.received) {
      expect(Object.fromEntries(received.headers)).toMatchObject(headers);
    }
  });
});

describe('traceparent', () => {
  it('of the client passes unchanged, with tracestate, and names the request in the log', async () => {
    const headers = { traceparent: TRACEPARENT, tracestate: 'vendor=opaque,other=1' };
    await world.request('/api/music/models', { cookie: ACCESS_ONLY, headers });
    expect(Object.fromEntries(sentHeaders())).toMatchObject(headers);
    await world.line({ traceId: '0af7651916cd43dd8448eb211c80319c' });
  });

  it('is replaced when Connection names it, because it was for one hop alone', async () => {
    const named = ['Connection: Traceparent, x-request-id'];
    const lines = [...named, `Traceparent: ${TRACEPARENT}`, 'X-Request-Id: mine'];
    expect((await rawCall(world, 'GET /api/music/models', { lines })).status).toBe(200);
    expect(sentHeaders().get('traceparent')).toEndWith('-00');
    expect(sentHeaders().get('x-request-id')).not.toBe('mine');
  });

  it.each([
    '',
    'no',
    ...[TRACEPARENT.toUpperCase(), TRACEPARENT.replace('00-', 'ff-')],
    ...[`${TRACEPARENT}-extra`, TRACEPARENT.slice(0, -1)],
    '00-00000000000000000000000000000000-b7ad6b7169203331-01',
    '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
  ])('is replaced when it is not valid, and tracestate is dropped: %j', async (traceparent) => {
    const headers = { traceparent, tracestate: 'vendor=opaque' };
    await world.request('/api/music/models', { cookie: ACCESS_ONLY, headers });
    const made = sentHeaders().get('traceparent') ?? '';
    expect(made).toMatch(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/);
    expect(sentHeaders().has('tracestate')).toBe(false);
    await world.line({ traceId: made.split('-')[1] });
  });

  it.each(['é=1', `v=${'x'.repeat(511)}`])('passes without the invalid tracestate %j', async (tracestate) => {
    const lines = [`Traceparent: ${TRACEPARENT}`, `Tracestate: ${tracestate}`];
    await rawCall(world, 'GET /api/music/models', { lines });
    expect(sentHeaders().get('traceparent')).toBe(TRACEPARENT);
    expect(sentHeaders().has('tracestate')).toBe(false);
  });
});
