import { afterEach, describe, expect, it, setSystemTime } from 'bun:test';
import type { GatewayClient } from '../../../src/client/gateway-client.ts';
import { ORDER, rejection, respondWith, stubGateway } from './gateway-stub.ts';

const UNKNOWN = 'The gateway responded with 429.';
/** One attempt, whose error the test gets. */
const ONCE = { giveUpAfterMs: 0 };

describe('the message of an error', () => {
  it.each([
    [{ error: { message: 'Too many tracks', code: 7 }, message: 'other' }, 'Too many tracks'],
    [{ message: 'Too many tracks' }, 'Too many tracks'],
    [{ error: 'limit', message: 'Too many' }, 'Too many'],
    [{ error: { message: ' ' }, message: 'Too many' }, 'Too many'],
    [{ message: { en: 'x' } }, UNKNOWN],
    [[{ message: 'x' }], UNKNOWN],
    [null, UNKNOWN],
    [undefined, UNKNOWN],
  ])('of %j is %j', async (body, message) => {
    const client = respondWith(JSON.stringify(body) ?? '<html>', { status: 429 });
    const error = await rejection(client.creations());
    expect(error).toMatchObject({ name: 'GatewayRequestError', message, status: 429 });
  });

  it.each([
    ['the language of the client', 'sw', {}, 'sw'],
    ["the request's own", 'sw', { 'accept-language': 'fr' }, 'fr'],
    ['left to the browser', undefined, {}, null],
  ])('is asked for in a language: %s', async (_, language, headers, expected) => {
    const { client, sent } = stubGateway([() => new Response()], { language: () => language });
    await client.upstream('/v1/me', { headers: new Headers(headers) });
    expect(sent[0]?.headers.get('accept-language')).toBe(expected);
  });
});

type Send = (client: GatewayClient) => Promise<unknown>;

describe('retryIsSafe', () => {
  it.each<[what: string, reads: boolean, send: Send]>([
    ['a generation', false, (client) => client.generate(ORDER, ONCE)],
    ['a change', false, (client) => client.setVisibility('1', true)],
    ['a sign-out', false, (client) => client.signOut()],
    ['a DELETE', false, (client) => client.upstream('/v1/me', { method: 'DELETE' })],
    ['a patch, as fetch sends it', false, (client) => client.upstream('/v1/me', { method: 'patch' })],
    ['models', true, (client) => client.models()],
    ['creations', true, (client) => client.creations()],
    ['the session', true, (client) => client.session()],
    ['other data', true, (client) => client.upstreamData('/v1/me')],
    ['a HEAD', true, (client) => client.upstream('/v1/me', { method: 'HEAD' })],
    ['a get in small letters', true, (client) => client.upstream('/v1/me', { method: 'get' })],
  ])('is true for %s after a refusal, else only if it reads: %p', async (...row) => {
    const [, reads, send] = row;
    for (const status of [304, 404, 502]) {
      const error = await rejection(send(respondWith(null, { status })));
      expect(error).toMatchObject({ status, retryIsSafe: status === 404 || reads });
    }
    const cause = new TypeError('Failed to fetch');
    const error = await rejection(send(stubGateway([() => Promise.reject(cause)]).client));
    expect(error).toMatchObject({ name: 'GatewayRequestError', status: 0, retryIsSafe: reads, cause });
    expect(error).toMatchObject({ message: 'The connection to the gateway failed.' });
  });

  it.each([
    [true, [400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 429]],
    // With 409, the first attempt under the same key may still be in flight.
    [false, [303, 307, 409, 500, 502, 503, 504]],
  ])('is %p for a generation after %j', async (retryIsSafe, statuses) => {
    for (const status of statuses) {
      const error = await rejection(respondWith(null, { status }).generate(ORDER, ONCE));
      expect(error).toMatchObject({ status, retryIsSafe });
    }
  });

  it.each([
    [true, 'connection_refused'],
    [true, 'connection_limit_reached'],
    [true, 'destination_ip_unroutable'],
    [true, 'destination_unavailable'],
    [true, 'dns_error'],
    [true, 'tls_certificate_error'],
    [true, 'proxy_internal_error, music-gateway;error=dns_error;details="x"'],
    [false, 'connection_terminated'],
    [false, 'http_protocol_error'],
    [false, 'http_response_content_coding'],
    [false, 'http_response_incomplete'],
    [false, 'http_response_timeout'],
    [false, 'tls_protocol_error'],
    [false, 'dns_error_of_some_kind'],
    [false, 'http_response_timeout; details="error=dns_error"'],
  ])('is %p for a generation after a 502 with the Proxy-Status %s', async (retryIsSafe, reason) => {
    const headers = { 'proxy-status': `front;received-status=502, music-gateway; error=${reason}` };
    const error = await rejection(respondWith(null, { status: 502, headers }).generate(ORDER, ONCE));
    expect(error).toMatchObject({ status: 502, retryIsSafe });
  });
});

describe('retryAfterSeconds', () => {
  afterEach(() => void setSystemTime());

  it.each([
    ['0', 0],
    ['120', 120],
    ['Fri, 20 Nov 2026 20:00:30 GMT', 30],
    ['Fri, 20 Nov 2026 19:59:00 GMT', 0],
    ['5, 5', undefined],
    ['-5', undefined],
    ['1e3', undefined],
    ['', undefined],
    ['Fri, 45 Nov 2026 20:00:30 GMT', undefined],
    [undefined, undefined],
  ])('of %p is %p', async (retryAfter, seconds) => {
    setSystemTime(new Date('2026-11-20T20:00:00.000Z'));
    const headers: HeadersInit = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
    const error = await rejection(respondWith(null, { status: 503, headers }).models());
    expect(error).toHaveProperty('retryAfterSeconds', seconds);
  });
});

describe('challenge', () => {
  const ERROR = 'insufficient_user_authentication';
  const ALL = { error: ERROR, acrValues: 'a', maxAgeSeconds: 9 };

  it.each([
    [`Bearer error="${ERROR}"`, { error: ERROR }],
    [`Bearer error="${ERROR}", max_age="0", realm="r"`, { error: ERROR, maxAgeSeconds: 0 }],
    [`Bearer error="${ERROR}", acr_values="a b"`, { error: ERROR, acrValues: 'a b' }],
    [`Bearer error="${ERROR}", acr_values="a", max_age="9", scope="s", Bearer error="e"`, ALL],
    [`Bearer error="${ERROR}", max_age="soon"`, { error: ERROR }],
    ['', undefined],
    ['Bearer', undefined],
    ['Bearer realm="r"', undefined],
    ['Basic realm="r"', undefined],
  ])('of %j is known, or the session has ended', async (header, challenge) => {
    const client = respondWith(null, { status: 401, headers: { 'www-authenticate': header } });
    const error = await rejection(client.models());
    expect(error).toMatchObject({ status: 401, sessionHasEnded: challenge === undefined });
    expect(error).toHaveProperty('challenge', challenge);
  });
});

describe('a response', () => {
  it('that is not JSON is an error with its status and request id, which quotes nothing of it', async () => {
    const client = respondWith('<html>secret</html>', { headers: { 'x-request-id': 'r-1' } });
    const requests = [client.models(), client.upstreamData('/v1/me'), client.setVisibility('1', true)];
    for (const [index, request] of requests.entries()) {
      const error = await rejection(request);
      expect(error).toMatchObject({ message: 'The response is not JSON.', status: 200, requestId: 'r-1' });
      expect(error).toMatchObject({ retryIsSafe: index < 2, cause: undefined });
    }
  });

  it('that breaks off is an error without a status', async () => {
    const cause = new TypeError('network error');
    const body = new ReadableStream({ pull: () => Promise.reject(cause) });
    const error = await rejection(respondWith(body).creations());
    expect(error).toMatchObject({ message: 'The connection to the gateway failed.', status: 0, cause });
    expect(error).toMatchObject({ retryIsSafe: true, requestId: undefined });
  });
});
