import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { PROXIED_METHODS, PROXIED_PATH, ROUTES, scriptRoutes } from '../../support/routes.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, ORIGIN, type RequestOptions, SIGNED_IN } from '../../support/world.ts';

const EVIL = 'http://evil.test';
const OTHER_ALLOWED_ORIGIN = 'http://other-studio.test:8080';
const MODELS = '/api/music/models';

const LOOK_ALIKES = `null * studio.test //studio.test http://studio.tes http://studioxtest http://a.studio.test
  http://studio.test.evil.test http://evil-studio.test https://studio.test http://studio.test:80 http://studio.test/
  http://other-studio.test http://studio.test# HTTP://STUDIO.TEST http://studio.test. http://user@studio.test
  http://studio.test@evil.test http://studio.test,http://other-studio.test:8080 constructor __proto__`;

const REQUEST_HEADERS =
  `accept accept-language cache-control content-encoding content-type idempotency-key if-match
  if-modified-since if-none-match if-range if-unmodified-since pragma range traceparent tracestate x-request-id`.split(
    /\s+/,
  );

/** The sorted, comma-separated members of a header, in lower case. */
function members(headers: Headers, name: string): string[] {
  return (headers.get(name) ?? '').toLowerCase().split(/, ?/).toSorted();
}

const world = sharedWorld();
scriptRoutes(world);

describe('the origin rule', () => {
  it.each<[call: string, path: string, options: RequestOptions]>([
    ...ROUTES.map(({ name, path, options }): [string, string, RequestOptions] => [name, path, options]),
    ['sign-out', '/api/auth/logout', { method: 'POST', cookie: SIGNED_IN }],
    ['a body that is too large', '/api/auth/idp', { method: 'POST', body: 'x'.repeat(2 ** 21 + 1) }],
    ['a request without a session', MODELS, {}],
    ['a wrong method', MODELS, { method: 'DELETE' }],
    ['a path outside /v1/', '/api/upstream/v2/library', {}],
    ['an unknown route', '/api/unknown', {}],
  ])('comes before all else: %s', async (_, path, options) => {
    for (const origin of [null, EVIL]) {
      const response = await world.request(path, { ...options, origin });
      expect(response.status).toBe(403);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
      expect(members(response.headers, 'vary')).toContain('origin');
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
      expect([response.headers.getSetCookie(), world.upstream.calls]).toEqual([[], []]);
      if (options.method !== 'HEAD') {
        expect(await envelopeMessage(response, 403)).toBe(messages.en.originNotAllowed);
      }
    }
  });

  it.each([ORIGIN, OTHER_ALLOWED_ORIGIN])('lets %s in and names it to the browser', async (origin) => {
    const { status, headers } = await world.request(MODELS, { origin, cookie: SIGNED_IN });
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, origin]);
    expect(world.upstream.calls).toEqual(['GET /v1/models']);
  });

  it.each(LOOK_ALIKES.split(/\s+/))('does not take %s for an allowed origin', async (origin) => {
    const { status, headers } = await world.request(MODELS, { origin, cookie: SIGNED_IN });
    expect([status, headers.get('access-control-allow-origin')]).toEqual([403, null]);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    ['the same origin twice', `Origin: ${ORIGIN}\r\nOrigin: ${ORIGIN}\r\n`],
    ['an allowed origin first', `Origin: ${ORIGIN}\r\nOrigin: ${EVIL}\r\n`],
    ['an allowed origin last', `Origin: ${EVIL}\r\nOrigin: ${ORIGIN}\r\n`],
    ['an empty origin', 'Origin:\r\n'],
    ['a header that only ends in Origin', `X-Origin: ${ORIGIN}\r\n`],
    ['only a Referer', `Referer: ${ORIGIN}/\r\n`],
    ['a letter outside ASCII', 'Origin: http://studi\xf6.test\r\n'],
  ])('refuses a request with %s', async (_, origin) => {
    expect((await rawCall(world, `GET ${MODELS}`, { origin })).status).toBe(403);
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('a preflight', () => {
  const preflight = (path: string, origin: string | null, requested = '*', method = 'PATCH') =>
    world.request(path, {
      method: 'OPTIONS',
      origin,
      headers: { 'access-control-request-method': method, 'access-control-request-headers': requested },
    });

  it.each([...new Set(ROUTES.map(({ path }) => path)), '/api/auth/logout'])(
    'for %s gets a response for an allowed origin, which may be kept for minutes',
    async (path) => {
      const response = await preflight(path, ORIGIN);
      expect([response.status, await response.text(), world.upstream.calls]).toEqual([204, '', []]);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'access-control-allow-origin': ORIGIN,
        'access-control-allow-credentials': 'true',
        'x-content-type-options': 'nosniff',
      });
      expect(members(response.headers, 'vary')).toContain('origin');
      expect(Number(response.headers.get('access-control-max-age'))).toBeWithin(60, 7201);
    },
  );

  it.each(['*', 'authorization', REQUEST_HEADERS.join(',')])(
    'allows the proxied methods and the forwarded headers, and no other: asked for %s',
    async (requested) => {
      for (const method of ['PUT', 'TRACE']) {
        const { headers } = await preflight(PROXIED_PATH, ORIGIN, requested, method);
        const methods = PROXIED_METHODS.map((each) => each.toLowerCase()).toSorted();
        expect(members(headers, 'access-control-allow-methods')).toEqual(methods);
        expect(members(headers, 'access-control-allow-headers')).toEqual(REQUEST_HEADERS);
      }
    },
  );

  it.each([null, EVIL, 'null', 'http://studio.test.evil.test'])('names no origin to %p', async (origin) => {
    const { headers } = await preflight(MODELS, origin);
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(members(headers, 'vary')).toContain('origin');
  });
});
