import { describe, expect, it } from 'bun:test';
import { createGatewayClient, type GatewayClient } from '../../../src/client/gateway-client.ts';
import { failWith, openSignedIn, recorded, rejection, respondWith } from './page.ts';

const ORDER = { model: 'm', prompt: 'p', music_length_ms: 3000 };
const MUSIC = 'POST /v1/music';
/** One attempt, whose error the test gets. */
const ONCE = { giveUpAfterMs: 0 };

type Send = (client: GatewayClient) => Promise<unknown>;

const CHANGES: [name: string, send: Send][] = [
  ['a generation', (client) => client.generate(ORDER, ONCE)],
  ['a change', (client) => client.setVisibility('1', true)],
  ['a sign-out', (client) => client.signOut()],
  ['a DELETE', (client) => client.upstream('/v1/music/creations/1', { method: 'DELETE' })],
  ['a patch, as fetch sends it', (client) => client.upstream('/v1/me', { method: 'patch' })],
];
const READS: [name: string, send: Send][] = [
  ['models', (client) => client.models()],
  ['creations', (client) => client.creations()],
  ['the session', (client) => client.session()],
  ['other data', (client) => client.upstreamData('/v1/me')],
  ['a HEAD', (client) => client.upstream('/v1/me', { method: 'HEAD' })],
  ['a get in small letters', (client) => client.upstream('/v1/me', { method: 'get' })],
];
/** After these the gateway has sent nothing to the upstream. */
const NEVER_SENT = [
  'connection_refused',
  'connection_limit_reached',
  'destination_ip_unroutable',
  'destination_unavailable',
  'dns_error',
  'tls_certificate_error',
];
const MAY_BE_SENT = [
  'connection_terminated',
  'http_protocol_error',
  'http_response_content_coding',
  'http_response_incomplete',
  'http_response_timeout',
  'tls_protocol_error',
  'dns_error_of_some_kind',
  'http_response_timeout; details="error=dns_error"',
];
const REFUSED = [400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 429];
const UNCERTAIN = [303, 307, 409, 500, 502, 503, 504];

type Outcome = [status: number, proxyStatus: string | undefined, retryIsSafe: boolean];
const OUTCOMES: Outcome[] = [
  ...NEVER_SENT.map((error): Outcome => [502, `music-gateway; error=${error}`, true]),
  [503, 'front;received-status=503, music-gateway;error=dns_error;details="x"', true],
  ...MAY_BE_SENT.map((error): Outcome => [502, `music-gateway; error=${error}`, false]),
  ...REFUSED.map((status): Outcome => [status, undefined, true]),
  ...UNCERTAIN.map((status): Outcome => [status, undefined, false]),
];

describe('retrying a generation', () => {
  it.each(OUTCOMES)('after %d with Proxy-Status %p is safe: %p', async (status, proxyStatus, retryIsSafe) => {
    const client = respondWith(null, { status, headers: proxyStatus ? { 'proxy-status': proxyStatus } : {} });
    expect(await rejection(client.generate(ORDER, ONCE))).toMatchObject({ status, retryIsSafe });
  });
});

describe.each(CHANGES)('retrying %s', (_, send) => {
  it('is safe after a refusal, and not after a failure or without a response', async () => {
    for (const [status, retryIsSafe] of [
      [404, true],
      [502, false],
    ] as const) {
      const error = await rejection(send(respondWith(null, { status })));
      expect(error).toMatchObject({ status, retryIsSafe });
    }
    const cause = new TypeError('Failed to fetch');
    const error = await rejection(send(failWith(cause)));
    expect(error).toMatchObject({ name: 'GatewayRequestError', status: 0, retryIsSafe: false });
    expect(error).toMatchObject({ message: 'The connection to the gateway failed.' });
    expect(error).toHaveProperty('retryAfterSeconds', undefined);
    expect(error).toHaveProperty('cause', cause);
  });
});

describe.each(READS)('reading %s again', (_, send) => {
  it('is safe after any failure, and without a response', async () => {
    for (const status of [304, 400, 502]) {
      const error = await rejection(send(respondWith(null, { status })));
      expect(error).toMatchObject({ status, retryIsSafe: true });
    }
    expect(await rejection(send(failWith('lost')))).toMatchObject({ status: 0, retryIsSafe: true });
  });
});

describe('a generation through the gateway', () => {
  it('may be retried when the upstream cannot be reached, but not when it is late', async () => {
    await using opened = await openSignedIn({ TIMEOUT_STREAM_MS: '1000' });
    const { world, client } = opened;
    const never = Promise.withResolvers<Response>();
    world.upstream.on(MUSIC, () => never.promise);
    expect(await rejection(client.generate(ORDER, ONCE))).toMatchObject({ status: 502, retryIsSafe: false });
    never.resolve(new Response());
    await world.upstream.stop();
    expect(await rejection(client.generate(ORDER, ONCE))).toMatchObject({ status: 502, retryIsSafe: true });
    expect(await rejection(client.session())).toMatchObject({ status: 502, retryIsSafe: true });
  });

  it('may be retried later when too many requests are in flight', async () => {
    await using opened = await openSignedIn({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const { world, client } = opened;
    const late = Promise.withResolvers<Response>();
    world.upstream.on(MUSIC, () => late.promise);
    const first = client.generate(ORDER);
    await world.upstream.arrived(MUSIC);
    const refused = { status: 503, retryIsSafe: true, retryAfterSeconds: 5 };
    expect(await rejection(client.generate(ORDER, ONCE))).toMatchObject(refused);
    late.resolve(new Response('audio'));
    expect(await new Response((await first).body).text()).toBe('audio');
  });
});

describe('Accept-Language of a request', () => {
  it.each([
    ['the language of the client', 'sw', {}, 'sw'],
    ["the request's own", 'sw', { 'accept-language': 'fr' }, 'fr'],
    ['left to the browser', undefined, {}, null],
  ])('is %s', async (_, language, headers, expected) => {
    const { fetch, sent } = recorded(async () => new Response());
    const client = createGatewayClient({ baseUrl: 'http://gateway.test', fetch, language: () => language });
    await client.upstream('/v1/me', { headers: new Headers(headers) });
    expect(new Headers(sent[0]?.init.headers).get('accept-language')).toBe(expected);
  });
});
