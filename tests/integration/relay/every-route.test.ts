import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { ROUTES, SIGN_IN_ROUTE, scriptRoutes } from '../../support/routes.ts';
import { CLOSED, REFRESH } from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import {
  envelopeMessage,
  ORIGIN,
  REFRESH_ONLY,
  type RequestOptions,
  SIGNED_IN,
  startWorld,
} from '../../support/world.ts';

const SECRETS = /access-1|secret-code|vvvv|taarab|127\.0\.0\.1/;
const IDS = {
  'x-request-id': 'mine',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=opaque',
};

function expectReadable({ headers }: Response): void {
  expect(Object.fromEntries(headers)).toMatchObject({
    'access-control-allow-origin': ORIGIN,
    'access-control-allow-credentials': 'true',
    'x-content-type-options': 'nosniff',
    'x-request-id': 'mine',
    vary: expect.stringMatching(/\borigin\b/i),
    'access-control-expose-headers': expect.stringMatching(/x-generation-id.*x-request-id/i),
  });
}

async function expectFailure(response: Response, { method }: RequestOptions, message: string, error: string) {
  expect(response.status).toBe(502);
  expect(response.headers.get('proxy-status')).toBe(`music-gateway; error=${error}`);
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.getSetCookie()).toEqual([]);
  expect(JSON.stringify([...response.headers])).not.toMatch(SECRETS);
  if (method !== 'HEAD') expect(await envelopeMessage(response, 502)).toBe(message);
}

describe.each(ROUTES)('$name', ({ path, options, calls, credentials, unreachable }) => {
  const world = sharedWorld();
  scriptRoutes(world);

  it('serves an allowed origin, and sends its ids to the upstream, but no cookie and no origin', async () => {
    const headers = { accept: 'text/html', authorization: 'Bearer from-the-browser', ...IDS };
    const response = await world.request(path, { ...options, headers });
    expect(response.status).toBe(200);
    expectReadable(response);
    expect(world.upstream.calls).toEqual([...calls]);
    for (const { headers: sent } of world.upstream.received) {
      expect(Object.fromEntries(sent)).toMatchObject(IDS);
      expect(sent.get('authorization')).toBe(credentials);
      expect(sent.get('accept')).toBe(path.startsWith('/api/upstream') ? 'text/html' : 'application/json');
      for (const name of ['cookie', 'origin']) expect(sent.has(name)).toBe(false);
    }
    await world.line({ requestId: 'mine', traceId: '0af7651916cd43dd8448eb211c80319c' });
  });

  // What else an upstream may do: faults/faulty-upstream.test.ts.
  it('responds 502, and names no address and no secret, when its server cannot be reached', async () => {
    await using away = startWorld({ UPSTREAM_URL: CLOSED, IDP_URL: CLOSED });
    await expectFailure(await away.request(path, options), options, unreachable, 'connection_refused');
    expect(away.log).toHaveLength(1);
    expect(away.log.join()).not.toMatch(SECRETS);
  });
});

it.each(ROUTES.filter(({ name, credentials }) => credentials && name !== 'session check'))(
  '$name without a session is a 401 that sets no cookie and calls nobody',
  async ({ path, options }) => {
    await using world = startWorld();
    for (const cookie of ['', 'svc_music_access=; svc_music_refresh=', 'svc_music_access=a%20b']) {
      const response = await world.request(path, { ...options, cookie });
      expect([response.status, response.headers.getSetCookie()]).toEqual([401, []]);
      if (options.method !== 'HEAD')
        expect(await envelopeMessage(response, 401)).toBe(messages.en.notSignedIn);
    }
    expect([world.upstream.calls, world.log]).toEqual([[], []]);
  },
);

const LATE = [
  ...ROUTES.map((route) => ({ ...route, calls: route.calls.slice(0, 1) })),
  { ...SIGN_IN_ROUTE, late: messages.en.upstreamTimeout },
  {
    ...{ ...SIGN_IN_ROUTE, path: '/api/auth/session', options: { cookie: REFRESH_ONLY }, calls: [REFRESH] },
    late: messages.en.upstreamUnreachable,
  },
];

// What a deadline covers: unit/fetch-upstream.test.ts. All wait at the same time, because each waits for a second.
it('a call that is late is a 502 on every route, and is not made again', async () => {
  const failed = LATE.map(async ({ deadline, path, options, calls, late }) => {
    await using world = startWorld({ [deadline]: '1000' });
    scriptRoutes(world);
    world.upstream.on(calls.at(-1) ?? '', () => new Promise(() => {}));
    await expectFailure(await world.request(path, options), options, late, 'http_response_timeout');
    expect([world.upstream.calls, world.log.length]).toEqual([[...calls], 1]);
  });
  await Promise.all(failed);
});

describe('every other response', () => {
  const world = sharedWorld();
  scriptRoutes(world);
  // The upstream's own Vary must not replace the gateway's, and its CORS headers would open the gateway.
  const headers = { vary: 'Accept', 'access-control-allow-origin': '*', 'x-content-type-options': 'off' };
  for (const status of [204, 304, 402, 500]) {
    const body = status < 400 ? null : 'no';
    world.upstream.on(`GET /v1/${status}`, () => new Response(body, { status, headers }));
  }

  it.each<[name: string, path: string, options: RequestOptions, status: number]>([
    ['a sign-in without fields', '/api/auth/idp', { json: {} }, 400],
    ['a body that is too large', '/api/auth/idp', { method: 'POST', body: 'x'.repeat(2 ** 21 + 1) }, 413],
    ['a session check without a session', '/api/auth/session', { cookie: '' }, 200],
    ['a sign-out', '/api/auth/logout', { method: 'POST' }, 200],
    ['models without a session', '/api/music/models', { cookie: '' }, 401],
    ['a relayed 204', '/api/upstream/v1/204', {}, 204],
    ['a relayed 304', '/api/upstream/v1/304', {}, 304],
    ['a relayed 402', '/api/upstream/v1/402', {}, 402],
    ['a relayed 500', '/api/upstream/v1/500', {}, 500],
    ['a path outside /v1/', '/api/upstream/v2/library', {}, 404],
    ['an unknown route', '/api/unknown', {}, 404],
    ['a wrong method', '/api/music/models', { method: 'DELETE' }, 405],
  ])('can be read by an allowed origin: %s', async (_, path, options, status) => {
    const ids = { 'x-request-id': 'mine' };
    const response = await world.request(path, { cookie: SIGNED_IN, headers: ids, ...options });
    expect(response.status).toBe(status);
    expectReadable(response);
  });
});
