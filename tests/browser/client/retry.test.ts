import { describe, expect, it } from 'bun:test';
import { createGatewayClient, type GatewayClient } from '../../../src/client/gateway-client.ts';
import { startWorld } from '../../support/world.ts';
import { clientIn, fetchOf, openPage, openSignedIn, recorded, rejection } from './page.ts';

const ORDER = { model: 'm', prompt: 'p', music_length_ms: 3000 };

function answeredWith(status: number, headers: Record<string, string> = {}): GatewayClient {
  const fetch = async () => new Response(null, { status, headers });
  return createGatewayClient({ baseUrl: 'http://gateway.test', fetch });
}

/** Every request that does something. */
const CHANGES: [name: string, send: (client: GatewayClient) => Promise<unknown>][] = [
  ['a generation', (client) => client.generate(ORDER)],
  ['a change', (client) => client.setVisibility('1', true)],
  ['signing out', (client) => client.signOut()],
  ['DELETE', (client) => client.upstream('/v1/music/creations/1', { method: 'DELETE' })],
  ['patch, as fetch sends it', (client) => client.upstream('/v1/me', { method: 'patch' })],
];
const READS: typeof CHANGES = [
  ['models', (client) => client.models()],
  ['creations', (client) => client.creations()],
  ['session', (client) => client.session()],
  ['other data', (client) => client.upstreamData('/v1/me')],
  ['HEAD', (client) => client.upstream('/v1/me', { method: 'HEAD' })],
  ['get', (client) => client.upstream('/v1/me', { method: 'get' })],
];

describe.each(CHANGES)('sending %s again', (_, send) => {
  it.each([
    'connection_refused',
    'connection_limit_reached',
    'destination_ip_unroutable',
    'destination_unavailable',
    'dns_error',
    'tls_certificate_error',
  ])('is safe after %s: it was never sent', async (error) => {
    for (const [status, header] of [
      [502, `music-gateway; error=${error}`],
      [503, `front;received-status=503, music-gateway;error=${error};details="x"`],
    ] as const) {
      const client = answeredWith(status, { 'proxy-status': header });
      expect(await rejection(send(client))).toMatchObject({ status, retryIsSafe: true });
    }
  });

  it.each([
    'connection_terminated',
    'http_protocol_error',
    'http_response_content_coding',
    'http_response_incomplete',
    'http_response_timeout',
    'tls_protocol_error',
    'dns_error_of_some_kind',
    'http_response_timeout; details="error=dns_error"',
  ])('is not safe after %s', async (error) => {
    const client = answeredWith(502, { 'proxy-status': `music-gateway; error=${error}` });
    expect(await rejection(send(client))).toMatchObject({ status: 502, retryIsSafe: false });
  });

  it.each([400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 429])('is safe after %d', async (status) => {
    expect(await rejection(send(answeredWith(status)))).toMatchObject({ status, retryIsSafe: true });
  });

  it.each([303, 307, 409, 500, 502, 503, 504])('is not safe after %d', async (status) => {
    expect(await rejection(send(answeredWith(status)))).toMatchObject({ status, retryIsSafe: false });
  });

  it('is not safe when there was no answer', async () => {
    const broken = new TypeError('Failed to fetch');
    const client = createGatewayClient({
      baseUrl: 'http://gateway.test',
      fetch: () => Promise.reject(broken),
    });
    const error = await rejection(send(client));
    expect(error).toMatchObject({
      name: 'GatewayRequestError',
      message: 'The connection to the gateway failed.',
      status: 0,
      retryIsSafe: false,
      retryAfterSeconds: undefined,
    });
    expect(error).toHaveProperty('cause', broken);
  });
});

describe.each(READS)('reading %s again', (_, send) => {
  it.each([304, 400, 409, 500, 502, 503])('is always safe, as after %d', async (status) => {
    expect(await rejection(send(answeredWith(status)))).toMatchObject({ status, retryIsSafe: true });
  });

  it('is safe when there was no answer', async () => {
    const fetch = () => Promise.reject(new TypeError('Failed to fetch'));
    const client = createGatewayClient({ baseUrl: 'http://gateway.test', fetch });
    expect(await rejection(send(client))).toMatchObject({ status: 0, retryIsSafe: true });
  });
});

describe('through the gateway, a generation', () => {
  it('may be sent again when the upstream cannot be reached', async () => {
    await using world = startWorld();
    const { client } = await openSignedIn(world);
    await world.upstream.stop();
    expect(await rejection(client.generate(ORDER))).toMatchObject({ status: 502, retryIsSafe: true });
  });

  it('may not when the upstream is late', async () => {
    await using world = startWorld({ TIMEOUT_STREAM_MS: '50' });
    const { client } = await openSignedIn(world);
    const never = Promise.withResolvers<Response>();
    world.upstream.on('POST /v1/music', () => never.promise);
    expect(await rejection(client.generate(ORDER))).toMatchObject({ status: 502, retryIsSafe: false });
    never.resolve(new Response());
  });

  it('may after a while when the gateway has too much to do', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const { client } = await openSignedIn(world);
    const held = Promise.withResolvers<Response>();
    world.upstream.on('POST /v1/music', () => held.promise);
    const first = client.generate(ORDER);
    await world.upstream.arrived('POST /v1/music');
    const second = await rejection(client.generate(ORDER));
    expect(second).toMatchObject({ status: 503, retryIsSafe: true, retryAfterSeconds: 5 });
    held.resolve(new Response('audio'));
    expect(await new Response((await first).body).text()).toBe('audio');
  });

  it('may not when the gateway cannot be reached', async () => {
    const client = clientIn(openPage(), { url: 'http://127.0.0.1:1' });
    expect(await rejection(client.generate(ORDER))).toMatchObject({ status: 0, retryIsSafe: false });
    expect(await rejection(client.models())).toMatchObject({ status: 0, retryIsSafe: true });
  });
});

describe('Accept-Language', () => {
  it.each([
    ['what the client gives', 'sw', {}, 'sw'],
    ["the request's own", 'sw', { 'accept-language': 'fr' }, 'fr'],
    ["the browser's", undefined, {}, null],
  ])('is %s', async (_, language, headers, sentLanguage) => {
    await using world = startWorld();
    const { fetch, sent } = recorded(fetchOf(openPage()));
    const client = clientIn(openPage(), world, { fetch, language: () => language });
    await rejection(client.upstream('/v1/me', { headers: new Headers(headers) }));
    expect(new Headers(sent[0]?.init.headers).get('accept-language')).toBe(sentLanguage);
  });
});
