import { describe, expect, it } from 'bun:test';
import type { GatewayClient } from '../../../src/client/gateway-client.ts';
import type { UpstreamData } from '../../../src/client/upstream-data.ts';
import { fakeTime } from '../fake-time.ts';
import { lost, ORDER, type Respond, rejection, respond, stubGateway } from './gateway-stub.ts';

type Send = (client: GatewayClient<UpstreamData>) => Promise<unknown>;
const models: Send = (client) => client.models();
/** One attempt. */
const order: Send = (client) => client.generate(ORDER, { giveUpAfterMs: 0 });

function errorOf(response: Respond, send = models): Promise<unknown> {
  return rejection(send(stubGateway(response).client));
}

describe('the message of an error', () => {
  const UNKNOWN = 'The gateway responded with 429.';
  it.each([
    [{ error: { message: 'Too many tracks', code: 7 }, message: 'other' }, 'Too many tracks'],
    [{ error: 'limit', message: 'Too many' }, 'Too many'],
    [{ error: { message: ' ' }, message: 'Too many' }, 'Too many'],
    [{ message: { en: 'x' } }, UNKNOWN],
    [undefined, UNKNOWN],
  ])('of %j is %j', async (body, message) => {
    const error = await errorOf(respond(429, {}, JSON.stringify(body) ?? '<html>'));
    expect(error).toMatchObject({ name: 'GatewayRequestError', message, status: 429 });
  });

  it.each([
    ['the language of the client', 'sw', {}, 'sw'],
    ["the request's own", 'sw', { 'accept-language': 'fr' }, 'fr'],
    ['left to the browser', undefined, {}, null],
  ])('is asked for in a language: %s', async (_, language, headers, expected) => {
    const { client, sent } = stubGateway(respond(200), { language: () => language });
    await client.upstream('/v1/me', { headers: new Headers(headers) });
    expect(sent[0]?.headers.get('accept-language')).toBe(expected);
  });
});

describe('retryIsSafe', () => {
  it.each<[what: string, reads: boolean, send: Send]>([
    ['a generation', false, order],
    ['a change', false, (client) => client.setVisibility('1', true)],
    ['models', true, models],
    ['the session', true, (client) => client.session()],
    ['a HEAD', true, (client) => client.upstream('/v1/me', { method: 'HEAD' })],
    ['a get in small letters', true, (client) => client.upstream('/v1/me', { method: 'get' })],
  ])('is true for %s after a refusal, else only if it reads: %p', async (_, reads, send) => {
    for (const status of [304, 404, 502])
      expect(await errorOf(respond(status), send)).toMatchObject({
        status,
        retryIsSafe: status === 404 || reads,
      });
    expect(await errorOf(lost, send)).toMatchObject({
      name: 'GatewayRequestError',
      status: 0,
      retryIsSafe: reads,
      message: 'The connection to the gateway failed.',
      cause: { message: 'Failed to fetch' },
    });
  });

  it.each([
    [true, [400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 429]],
    // With 409, the first attempt under the same key may still be in flight.
    [false, [303, 307, 409, 500, 502, 503, 504, 520, 522, 524]],
  ])('is %p for a generation after %j', async (retryIsSafe, statuses) => {
    for (const status of statuses)
      expect(await errorOf(respond(status), order)).toMatchObject({ status, retryIsSafe });
  });

  it.each([
    [true, 'connection_refused'],
    [true, 'connection_limit_reached'],
    [true, 'destination_ip_unroutable'],
    [true, 'destination_unavailable'],
    [true, 'tls_certificate_error, front;error=http_response_incomplete'],
    [true, 'proxy_internal_error, music-gateway;error=dns_error;details="x"'],
    [false, 'connection_terminated'],
    [false, 'dns_error_of_some_kind'],
    [false, 'http_response_timeout; details="error=dns_error"'],
  ])('is %p for a generation after a 502 with the Proxy-Status %s', async (retryIsSafe, reason) => {
    const headers = { 'proxy-status': `front;received-status=502, music-gateway; error=${reason}` };
    expect(await errorOf(respond(502, headers), order)).toMatchObject({ status: 502, retryIsSafe });
  });
});

it.each([
  ['0', 0],
  ['120', 120],
  ['Fri, 20 Nov 2026 20:00:30 GMT', 30],
  ['Fri, 20 Nov 2026 19:59:00 GMT', 0],
  ['5, 5', undefined],
  ['1e3', undefined],
  ['', undefined],
  ['Fri, 45 Nov 2026 20:00:30 GMT', undefined],
  [undefined, undefined],
])('retryAfterSeconds of %p is %p', async (retryAfter, seconds) => {
  fakeTime(new Date('2026-11-20T20:00:00.000Z'));
  const headers: HeadersInit = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  expect(await errorOf(respond(503, headers))).toHaveProperty('retryAfterSeconds', seconds);
});

const ERROR = 'insufficient_user_authentication';
const ALL = { error: ERROR, acrValues: 'a', maxAgeSeconds: 9 };
it.each([
  [`Bearer error="${ERROR}"`, { error: ERROR }],
  [`Bearer error="${ERROR}", max_age="0", realm="r"`, { error: ERROR, maxAgeSeconds: 0 }],
  [`Bearer error="${ERROR}", acr_values="a", max_age="9", scope="s", Bearer error="e"`, ALL],
  [`Bearer error="${ERROR}", max_age="soon"`, { error: ERROR }],
  ['', undefined],
  ['Bearer realm="r"', undefined],
])('challenge of %j is known, or the session has ended', async (header, challenge) => {
  const error = await errorOf(respond(401, { 'www-authenticate': header }));
  expect(error).toMatchObject({ status: 401, sessionHasEnded: challenge === undefined });
  expect(error).toHaveProperty('challenge', challenge);
});

describe('a response', () => {
  it('that is not JSON is an error with its status and request id, which quotes nothing of it', async () => {
    const html = respond(200, { 'x-request-id': 'r-1' }, '<html>secret</html>');
    const details = { message: 'The response is not JSON.', status: 200, requestId: 'r-1', cause: undefined };
    expect(await errorOf(html)).toMatchObject({ ...details, retryIsSafe: true });
    const change: Send = (client) => client.setVisibility('1', true);
    expect(await errorOf(html, change)).toMatchObject({ ...details, retryIsSafe: false });
  });

  it('that breaks off is an error without a status', async () => {
    const cause = new TypeError('network error');
    const body = new ReadableStream({ pull: () => Promise.reject(cause) });
    expect(await errorOf(respond(200, {}, body))).toMatchObject({
      message: 'The connection to the gateway failed.',
      status: 0,
      cause,
      retryIsSafe: true,
      requestId: undefined,
    });
  });
});
