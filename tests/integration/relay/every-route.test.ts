import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { ROUTES, type RouteCase, scriptRoutes } from '../../support/routes.ts';
import { sharedWorld, startRawWorld } from '../../support/shared-world.ts';
import { envelopeMessage, ORIGIN, type RequestOptions, SIGNED_IN, startWorld } from '../../support/world.ts';

const EVIL_ORIGIN = 'http://evil.test';
/** Nothing listens there; a port that was free a moment ago could be taken again. */
const CLOSED = 'http://127.0.0.1:9/secret-base';
const SECRETS = /access-1|secret-code|vvvv|taarab|127\.0\.0\.1|secret-base/;

/** The comma-separated members of a header, in lower case. */
function members({ headers }: Response, name: string): string[] {
  return (headers.get(name) ?? '').split(',').map((member) => member.trim().toLowerCase());
}

function expectReadable(response: Response): void {
  expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  expect(response.headers.get('access-control-allow-credentials')).toBe('true');
  expect(members(response, 'vary')).toContain('origin');
  const exposed = members(response, 'access-control-expose-headers');
  expect(exposed).toContainValues(['content-disposition', 'x-generation-id', 'x-music-creation-id']);
  expect(exposed).toContain('x-request-id');
  expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  expect(response.headers.get('x-request-id')).toBe('mine');
}

async function expectFailure(response: Response, { options }: RouteCase, message: string, error?: string) {
  expect(response.status).toBe(502);
  if (error) expect(response.headers.get('proxy-status')).toBe(`music-gateway; error=${error}`);
  expect(response.headers.getSetCookie()).toEqual([]);
  expect(response.headers.get('cache-control')).toBe('no-store');
  if (options.method !== 'HEAD') expect(await envelopeMessage(response, 502)).toBe(message);
}

describe.each(ROUTES)('$name', (route) => {
  const { path, options, calls, credentials } = route;
  const world = sharedWorld();
  scriptRoutes(world);

  it('serves an allowed origin, and sends its id to the upstream, but no cookie and no origin', async () => {
    const headers = { authorization: 'Bearer from-the-browser', 'x-request-id': 'mine' };
    const response = await world.request(path, { ...options, headers });
    expect(response.status).toBe(200);
    expectReadable(response);
    expect(world.upstream.calls).toEqual([...calls]);
    for (const received of world.upstream.received) {
      expect(received.headers.get('x-request-id')).toBe('mine');
      expect(received.headers.get('traceparent')).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
      expect(received.headers.get('authorization')).toBe(credentials);
      expect(received.headers.has('cookie')).toBe(false);
      expect(received.headers.has('origin')).toBe(false);
    }
  });

  it.each([null, EVIL_ORIGIN])('refuses the origin %p before all else', async (origin) => {
    const response = await world.request(path, { ...options, origin });
    expect(response.status).toBe(403);
    if (options.method !== 'HEAD') {
      expect(await envelopeMessage(response, 403)).toBe(messages.en.originNotAllowed);
    }
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });

  it('responds 502, and names no address and no secret, when its server cannot be reached', async () => {
    await using away = startWorld({ UPSTREAM_URL: CLOSED, IDP_URL: CLOSED });
    const response = await away.request(path, options);
    expect(JSON.stringify([...response.headers])).not.toMatch(SECRETS);
    await expectFailure(response, route, route.unreachable, 'connection_refused');
    expect(route.unreachable).not.toMatch(SECRETS);
    expect(away.log).toHaveLength(1);
    expect(away.log.join()).not.toMatch(SECRETS);
  });

  it('responds 502 when its server is late, and does not call it again', async () => {
    await using late = startWorld({ [route.deadline]: '150' });
    for (const call of calls) late.upstream.on(call, () => new Promise(() => {}));
    const response = await late.request(path, options);
    await expectFailure(response, route, route.late, 'http_response_timeout');
    expect(late.upstream.calls).toEqual(calls.slice(0, 1));
    expect(late.log).toHaveLength(1);
  });

  it.each([
    ['closes the connection', ''],
    ['does not speak HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['breaks off in the headers', 'HTTP/1.1 200 OK\r\nContent-Ty'],
  ])('responds 502 when its server %s, and does not call it again', async (_, bytes) => {
    await using broken = await startRawWorld(bytes);
    await expectFailure(await broken.request(path, options), route, route.unreachable);
    expect(broken.connections()).toBe(1);
  });

  it.each(['099', '600', '999'])(
    'responds 502 to the status %s, which HTTP does not have',
    async (status) => {
      await using broken = await startRawWorld(`HTTP/1.1 ${status} Odd\r\nContent-Length: 0\r\n\r\n`);
      const response = await broken.request(path, options);
      await expectFailure(response, route, route.invalid, 'http_protocol_error');
      expect(broken.connections()).toBe(1);
    },
  );
});

describe.each(ROUTES.filter(({ name, credentials }) => credentials && name !== 'session check'))(
  '$name without a session',
  ({ path, options }) => {
    const world = sharedWorld();

    it.each(['', 'svc_music_access=; svc_music_refresh=', 'svc_music_access=a%20b'])(
      'is a 401 that sets no cookie: "%s"',
      async (cookie) => {
        const response = await world.request(path, { ...options, cookie });
        expect(response.status).toBe(401);
        if (options.method !== 'HEAD') {
          expect(await envelopeMessage(response, 401)).toBe(messages.en.notSignedIn);
        }
        expect(response.headers.getSetCookie()).toEqual([]);
        expect(world.upstream.calls).toEqual([]);
        expect(world.log).toEqual([]);
      },
    );
  },
);

describe('every other response', () => {
  const signedIn = { cookie: SIGNED_IN };
  const OTHERS: [name: string, path: string, options: RequestOptions, status: number][] = [
    ['a sign-in without fields', '/api/auth/idp', { json: {} }, 400],
    ['malformed JSON', '/api/auth/idp', { method: 'POST', body: '{' }, 400],
    ['a body that is too large', '/api/auth/idp', { method: 'POST', body: 'x'.repeat(2 ** 21 + 1) }, 413],
    ['a session check without a session', '/api/auth/session', {}, 200],
    ['a sign-out', '/api/auth/logout', { method: 'POST' }, 200],
    ['a sign-out of a session', '/api/auth/logout', { method: 'POST', ...signedIn }, 200],
    ['models without a session', '/api/music/models', {}, 401],
    ['a generation without fields', '/api/music/generate', { ...signedIn, json: {} }, 400],
    ['a relayed stream', '/api/upstream/v1/stream', signedIn, 200],
    ['a relayed 204', '/api/upstream/v1/empty', signedIn, 204],
    ['a relayed 304', '/api/upstream/v1/unchanged', signedIn, 304],
    ['a relayed 402', '/api/upstream/v1/paid', { ...signedIn, json: {} }, 402],
    ['a relayed 500', '/api/upstream/v1/broken', signedIn, 500],
    ['a path outside /v1/', '/api/upstream/v2/library', signedIn, 404],
    ['a proxy path without a version', '/api/upstream', signedIn, 404],
    ['an unknown route', '/api/unknown', {}, 404],
    ['the root', '/', {}, 404],
    ['a wrong method', '/api/music/models', { method: 'DELETE' }, 405],
    ['an upstream with too many headers', '/api/upstream/v1/headers', signedIn, 502],
  ];
  const world = sharedWorld();
  scriptRoutes(world);
  // The upstream's own Vary must not replace the gateway's, and its CORS headers would open the gateway.
  const headers = { vary: 'Accept', 'access-control-allow-origin': '*', 'x-content-type-options': 'off' };
  const tooManyHeaders = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`x-filler-${at}`, 'x']));
  const respond = (status: number) => () => new Response(status === 500 ? 'no' : null, { status, headers });
  world.upstream
    .on('GET /v1/empty', respond(204))
    .on('GET /v1/unchanged', respond(304))
    .on('POST /v1/paid', respond(402))
    .on('GET /v1/broken', respond(500))
    .on('GET /v1/stream', () => new Response(twoChunks(), { headers }))
    .on('GET /v1/headers', () => new Response(null, { headers: tooManyHeaders }));

  it.each(OTHERS)('to an allowed origin can be read by it: %s', async (_, path, options, status) => {
    const response = await world.request(path, { ...options, headers: { 'x-request-id': 'mine' } });
    expect(response.status).toBe(status);
    expectReadable(response);
    await response.arrayBuffer();
  });

  it.each(OTHERS)('to another origin is a 403 that varies by Origin: %s', async (_, path, options) => {
    const response = await world.request(path, { ...options, origin: EVIL_ORIGIN });
    expect(await envelopeMessage(response, 403)).toBe(messages.en.originNotAllowed);
    expect(members(response, 'vary')).toContain('origin');
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
  });
});

async function* twoChunks(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('a');
  yield Buffer.from('b');
}
