import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { PROXIED_METHODS, PROXIED_PATH, ROUTES, scriptRoutes } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, ORIGIN, SIGNED_IN } from '../../support/world.ts';

const OTHER_ALLOWED_ORIGIN = 'http://other-studio.test:8080';

const LOOK_ALIKES = [
  ...['null', '*', 'studio.test', '//studio.test', 'http://studio.tes', 'http://studioxtest'],
  ...['http://studio.test.evil.test', 'http://evil-studio.test', 'http://a.studio.test'],
  ...['http://studio.test:81', 'http://studio.test:80', 'http://other-studio.test', 'https://studio.test'],
  ...['http://studio.test/', 'http://studio.test/path', 'http://studio.test?', 'http://studio.test#'],
  ...['HTTP://STUDIO.TEST', 'http://Studio.test', 'http://studio.test.'],
  ...['http://user@studio.test', 'http://studio.test@evil.test', 'http://evil.test/http://studio.test'],
  ...['http://studio.test http://evil.test', 'http://studio.test,http://other-studio.test:8080'],
  ...['http://studio.test, http://studio.test'],
  ...['constructor', '__proto__', 'toString', 'hasOwnProperty'],
];

const REQUEST_HEADERS = [
  ...['accept', 'accept-language', 'cache-control', 'content-encoding', 'content-type', 'idempotency-key'],
  ...['if-match', 'if-modified-since', 'if-none-match', 'if-range', 'if-unmodified-since', 'pragma', 'range'],
  ...['traceparent', 'tracestate', 'x-request-id'],
];

/** The sorted, comma-separated members of a header, in lower case. */
function members(headers: Headers, name: string): string[] {
  return (headers.get(name) ?? '').toLowerCase().split(/, ?/).toSorted();
}

describe('the origin rule', () => {
  const world = sharedWorld();
  scriptRoutes(world);

  it.each([ORIGIN, OTHER_ALLOWED_ORIGIN])('lets %s in and names it to the browser', async (origin) => {
    const response = await world.request('/api/music/models', { origin, cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe(origin);
    expect(response.headers.get('access-control-allow-credentials')).toBe('true');
    expect(world.upstream.calls).toEqual(['GET /v1/models']);
  });

  it.each(LOOK_ALIKES)('does not take %s for an allowed origin', async (origin) => {
    const response = await world.request('/api/music/models', { origin, cookie: SIGNED_IN });
    expect(await envelopeMessage(response, 403)).toBe(messages.en.originNotAllowed);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['the same origin twice', `Origin: ${ORIGIN}\r\nOrigin: ${ORIGIN}\r\n`],
    ['two allowed origins', `Origin: ${ORIGIN}\r\nOrigin: ${OTHER_ALLOWED_ORIGIN}\r\n`],
    ['an allowed origin first', `Origin: ${ORIGIN}\r\nOrigin: http://evil.test\r\n`],
    ['an allowed origin last', `Origin: http://evil.test\r\nOrigin: ${ORIGIN}\r\n`],
    ['an empty origin', 'Origin:\r\n'],
    ['a header that only ends in Origin', `X-Origin: ${ORIGIN}\r\n`],
    ['only a Referer', `Referer: ${ORIGIN}/\r\n`],
    ['a letter outside ASCII', 'Origin: http://studi\xf6.test\r\n'],
  ])('refuses a request with %s', async (_, origin) => {
    const response = await rawCall(world, 'GET /api/music/models', { origin });
    expect(response.status).toBe(403);
    expect(JSON.parse(response.body)).toEqual({ error: { message: messages.en.originNotAllowed } });
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('a preflight', () => {
  const world = sharedWorld();
  const preflight = (
    path: string,
    origin: string | null,
    requested = REQUEST_HEADERS.join(','),
    method = 'PATCH',
  ) =>
    world.request(path, {
      method: 'OPTIONS',
      origin,
      headers: { 'access-control-request-method': method, 'access-control-request-headers': requested },
    });

  it.each([...new Set(ROUTES.map(({ path }) => path)), '/api/auth/logout'])(
    'for %s gets a response for an allowed origin, which may be kept for minutes',
    async (path) => {
      const response = await preflight(path, ORIGIN);
      expect(response.status).toBe(204);
      expect(await response.text()).toBe('');
      expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN);
      expect(response.headers.get('access-control-allow-credentials')).toBe('true');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(members(response.headers, 'vary')).toContain('origin');
      expect(Number(response.headers.get('access-control-max-age'))).toBeWithin(60, 7201);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  it.each([...PROXIED_METHODS, 'TRACE'])(
    'for %s allows the proxied methods, and no other',
    async (method) => {
      const response = await preflight(PROXIED_PATH, ORIGIN, '', method);
      const allowed = members(response.headers, 'access-control-allow-methods');
      expect(allowed).toEqual(['delete', 'get', 'head', 'patch', 'post', 'put']);
    },
  );

  it.each([REQUEST_HEADERS.join(','), 'authorization', 'cookie', 'via', 'x-forwarded-for', '*'])(
    'allows the forwarded request headers, and no other: asked for %s',
    async (requested) => {
      const { headers } = await preflight('/api/music/generate', ORIGIN, requested);
      expect(members(headers, 'access-control-allow-headers')).toEqual(REQUEST_HEADERS);
    },
  );

  it.each([null, ...LOOK_ALIKES])('names no allowed origin to %p', async (origin) => {
    const response = await preflight('/api/music/models', origin);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    expect(members(response.headers, 'vary')).toContain('origin');
    expect(world.upstream.calls).toEqual([]);
  });
});
