import { describe, expect, it } from 'bun:test';
import { REQUEST_HEADERS } from '../../../src/gateway/http/forwarded-headers.ts';
import { messages } from '../../../src/gateway/http/messages.ts';
import { PROXIED_METHODS, ROUTES, scriptRoutes } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  ORIGIN,
  type RequestOptions,
  startWorld,
} from '../../support/world.ts';

const EVIL = 'http://evil.test';
const MODELS = '/api/music/models';
const LOOK_ALIKES = `null * studio.test //studio.test http://studio.tes http://studioxtest http://a.studio.test
  http://studio.test.evil.test http://evil-studio.test https://studio.test http://studio.test:80 http://studio.test/
  http://other.studio.test http://studio.test# HTTP://STUDIO.TEST http://studio.test. http://user@studio.test
  http://studio.test@evil.test http://studio.test,http://other.studio.test:8080 constructor __proto__`;
const READABLE_HEADERS = `Content-Disposition X-Generation-Id X-Music-Creation-Id Accept-Ranges Age Allow
  Content-Encoding Content-Location Content-Range ETag Link Location RateLimit RateLimit-Policy RateLimit-Limit
  RateLimit-Remaining RateLimit-Reset Proxy-Status Retry-After Server-Timing WWW-Authenticate X-RateLimit-Limit
  X-RateLimit-Remaining X-RateLimit-Reset X-Request-Id`.replace(/\s+/g, ', ');

/** What the monitoring of a page adds to its requests. */
const MONITORING = `baggage sentry-trace x-requested-with x-datadog-origin x-datadog-parent-id
  x-datadog-sampling-priority x-datadog-tags x-datadog-trace-id`;

const SIGNED_IN = { cookie: ACCESS_ONLY };
const ID = { 'x-request-id': 'mine' };
const ALWAYS = { ...ID, 'x-content-type-options': 'nosniff', vary: expect.stringMatching(/\borigin\b/i) };

const world = sharedWorld();
scriptRoutes(world);

type Row = [what: string, path: string, options: RequestOptions, status: number];

// Two Origins in a request, and bytes around one: faults/fuzz.
describe('the origin rule', () => {
  it.each<Row>([
    ...ROUTES.map(({ name, path, options }): Row => [name, path, options, 200]),
    ['sign-out', '/api/auth/logout', { method: 'POST', ...SIGNED_IN }, 200],
    ['a body that is too large', '/api/auth/idp', { method: 'POST', body: 'x'.repeat(2 ** 21 + 1) }, 413],
    ['models without a session', MODELS, {}, 401],
    ['a wrong method', MODELS, { method: 'DELETE' }, 405],
    ['an unknown route', '/api/unknown', {}, 404],
  ])('lets an allowed origin read %s, and others nothing', async (_, path, options, status) => {
    const readable = await world.request(path, { headers: ID, ...options });
    expect(readable.status).toBe(status);
    expect(Object.fromEntries(readable.headers)).toMatchObject({
      ...ALWAYS,
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': READABLE_HEADERS,
    });
    world.upstream.received.length = 0;
    for (const origin of [null, EVIL]) {
      const refused = await world.request(path, { headers: ID, ...options, origin });
      const { headers } = refused;
      expect(Object.fromEntries(headers)).toMatchObject({ ...ALWAYS, 'cache-control': 'no-store' });
      expect(headers.get('access-control-allow-origin')).toBeNull();
      expect([refused.status, headers.getSetCookie(), world.upstream.calls]).toEqual([403, [], []]);
      const message = options.method !== 'HEAD' && (await envelopeMessage(refused, 403));
      const key = origin === null ? 'originMissing' : 'originNotAllowed';
      expect(message).toBeOneOf([false, messages.en[key]]);
    }
  });

  it('lets every listed origin in, and no other that looks like it', async () => {
    const other = 'http://other.studio.test:8080';
    for (const origin of [other, ...LOOK_ALIKES.split(/\s+/)]) {
      const { status, headers } = await world.request(MODELS, { origin, ...SIGNED_IN });
      const allowed = headers.get('access-control-allow-origin');
      expect([origin, status, allowed]).toEqual([origin, ...(origin === other ? [200, other] : [403, null])]);
    }
    expect(world.upstream.calls).toEqual(['GET /v1/models']);
  });
});

const OWN = { 'sec-fetch-site': 'same-origin', host: new URL(ORIGIN).host };
const ON = { SAME_ORIGIN: 'true' };
const BEHIND_PROXY = { ...ON, TRUSTED_PROXIES: '127.0.0.1' };
const named = (host: string) => ({ 'x-forwarded-host': host });
const SECURE = { ...ON, ALLOWED_ORIGINS: 'https://studio.test,http://[::1]:81' };

it.each<[what: string, settings: Record<string, string>, headers: Record<string, string>, status: number]>([
  ['when the host is that of an allowed origin', ON, OWN, 200],
  ['when that host has a port', ON, { ...OWN, host: 'other.studio.test:8080' }, 200],
  ['when a trusted proxy names it', BEHIND_PROXY, { ...OWN, host: 'evil.test', ...named(OWN.host) }, 200],
  ['when a trusted proxy names no host', BEHIND_PROXY, OWN, 200],
  ['when that host is in capitals', ON, { ...OWN, host: 'STUDIO.Test' }, 200],
  ['when it has the default port', ON, { ...OWN, host: `${OWN.host}:80` }, 200],
  ['when it has the default port of https', SECURE, { ...OWN, host: `${OWN.host}:443` }, 200],
  ['when it is an address', SECURE, { ...OWN, host: '[::1]:81' }, 200],
  [
    'when the nearest proxy names it last',
    BEHIND_PROXY,
    { ...OWN, ...named(`evil.test , ${OWN.host}:80`) },
    200,
  ],
  [
    'when the nearest proxy names another last',
    BEHIND_PROXY,
    { ...OWN, ...named(`${OWN.host}, evil.test`) },
    403,
  ],
  ['when the nearest proxy names none', BEHIND_PROXY, { ...OWN, ...named(`${OWN.host}, `) }, 403],
  ['to the default port of another scheme', ON, { ...OWN, host: `${OWN.host}:443` }, 403],
  ['to that of http instead of https', SECURE, { ...OWN, host: `${OWN.host}:80` }, 403],
  ['to the default port instead of its own', SECURE, { ...OWN, host: '[::1]' }, 403],
  ['to several hosts', BEHIND_PROXY, { ...OWN, host: `evil.test,${OWN.host}` }, 403],
  ['to a host with a dot at its end', ON, { ...OWN, host: `${OWN.host}.` }, 403],
  ['without the setting', {}, OWN, 403],
  ['from the same site', ON, { ...OWN, 'sec-fetch-site': 'same-site' }, 403],
  ['from another site', ON, { ...OWN, 'sec-fetch-site': 'cross-site' }, 403],
  ['from no page', ON, { ...OWN, 'sec-fetch-site': 'none' }, 403],
  ['when the browser does not say so', ON, { host: OWN.host }, 403],
  ['to another host, whose name leads here', ON, { ...OWN, host: 'evil.test' }, 403],
  ['to another port', ON, { ...OWN, host: `${OWN.host}:8080` }, 403],
  ['when a stranger names the host', ON, { ...OWN, host: 'evil.test', ...named(OWN.host) }, 403],
  ['when a trusted proxy names another host', BEHIND_PROXY, { ...OWN, ...named('evil.test') }, 403],
  ['when it has an Origin that is not allowed', ON, { ...OWN, origin: EVIL }, 403],
])('SAME_ORIGIN judges a request without Origin %s: %j %j %i', async (_, settings, headers, status) => {
  await using own = startWorld(settings);
  own.upstream.on('GET /v1/models', () => Response.json([]));
  const response = await own.request(MODELS, { origin: null, headers, ...SIGNED_IN });
  expect(response.status).toBe(status);
  expect(response.headers.get('access-control-allow-origin')).toBeNull();
  expect(own.upstream.calls).toEqual(status === 200 ? ['GET /v1/models'] : []);
});

it('A preflight gets a response for an allowed origin alone, which allows no more, whatever it asks for', async () => {
  for (const path of [...new Set(ROUTES.map((route) => route.path)), '/api/auth/logout']) {
    const asked = {
      'access-control-request-method': 'TRACE',
      'access-control-request-headers': 'authorization',
    };
    const preflight = { method: 'OPTIONS', headers: asked };
    const { status, headers } = await world.request(path, preflight);
    expect([path, status, world.upstream.calls]).toEqual([path, 204, []]);
    expect(Object.fromEntries(headers)).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': PROXIED_METHODS.join(', '),
      vary: ALWAYS.vary,
    });
    // Which the proxy forwards: openapi/document.test.ts.
    expect(headers.get('access-control-allow-headers')?.split(/, ?/)).toEqual([
      ...REQUEST_HEADERS,
      ...MONITORING.split(/\s+/),
    ]);
    // It may be kept for minutes.
    expect(Number(headers.get('access-control-max-age'))).toBeWithin(60, 7201);
    for (const origin of [null, EVIL]) {
      const refused = await world.request(path, { ...preflight, origin });
      expect(refused.headers.get('access-control-allow-origin')).toBeNull();
      expect(refused.headers.get('vary')).toMatch(/\borigin\b/i);
    }
  }
});
