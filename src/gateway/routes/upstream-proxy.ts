/** Relays the rest of the upstream's `/v1/` API, with the session's token or without one for public playback. */

import { Elysia } from 'elysia';
import type { Permit } from '../admission/permit.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { isStreamed } from '../exchange/observed-body.ts';
import { type RequestBody, readBody } from '../exchange/request-body.ts';
import { CLOSE, GatewayError, methodNotAllowed } from '../http/errors.ts';
import { forwardedRequestHeaders, relayedHeaders, VARY } from '../http/forwarded-headers.ts';
import type { SessionParts, SessionPlugin } from '../session/session.ts';
import { STREAMED_BODY_BYTES } from '../settings/memory.ts';
import { longRange } from '../upstream/byte-range.ts';
import { type Fetcher, fetchSliced } from '../upstream/fetch-sliced.ts';
import { fetchUpstream, type UpstreamCall } from '../upstream/fetch-upstream.ts';
import { declaredLength, discard, type UpstreamResponse } from '../upstream/upstream-response.ts';
import { PROXY_PREFIX, parseTarget, type UpstreamTarget } from './proxy-target.ts';

/** Every method that a browser may send to the gateway; the other routes accept no more. */
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export function upstreamProxyRoutes(
  { settings, api, admission }: SessionParts,
  sessionPlugin: SessionPlugin,
) {
  const { relaySliceBytes: sliceBytes, upstreamUrl } = settings;

  /**
   * Calls the upstream and relays its response. Reserves memory before the call, and again when the head is known.
   *
   * @throws GatewayError 400 for a header with a control character, or for a GET or HEAD with a body; 429, 502 or 503 as
   *   the call and {@link Permit.reserveBody} do
   */
  const relay = async (
    exchange: Exchange,
    { url, isPublic }: UpstreamTarget,
    permit: Permit,
    fetcher: Fetcher,
    body?: RequestBody,
  ): Promise<Response> => {
    const { request, record } = exchange;
    if (!body && hasBody(request)) throw new GatewayError(400, 'bodyNotAllowed', { headers: CLOSE });
    const { method, signal } = request;
    const headers = forwardedRequestHeaders(request);
    const name = isPublic ? 'public' : 'proxy';
    const call = api.relayedCall({ name, method, url, headers, signal, ...(body && { body: body.bytes }) });
    const waiting = permit.reserveReadAhead();
    if (waiting) await waiting;
    const range = longRange(call, sliceBytes);
    const upstream = await (range
      ? fetchSliced(call, range, sliceBytes, fetcher, record)
      : fetcher.fetch(call));
    try {
      reserveFor(permit, upstream, sliceBytes);
    } catch (refusal) {
      await discard(upstream);
      throw refusal;
    }
    const mapping = { requestUrl: url, upstreamUrl, gatewayPath: PROXY_PREFIX };
    const vary = isPublic ? VARY.public : VARY.session;
    return exchange.respond(upstream.body, upstream.status, relayedHeaders(upstream.headers, mapping, vary));
  };

  const relayPublic = async (exchange: Exchange, target: UpstreamTarget): Promise<Response> => {
    const permit = await admission.enter('public', undefined, exchange);
    const fetch = (call: UpstreamCall) => fetchUpstream(call, exchange.record);
    return relay(exchange, target, permit, { fetch, fetchMore: fetch });
  };

  // One handler for all methods: for HEAD, a GET route of Elysia's would run its handler and set a Content-Length of 0.
  return new Elysia({ name: 'upstream-proxy' }).use(sessionPlugin).all(
    `${PROXY_PREFIX}/*`,
    async ({ request, session, exchange }) => {
      const { method } = request;
      const target = parseTarget(request, upstreamUrl);
      if (!target) throw new GatewayError(404, 'notFound');
      if (!PROXIED_METHODS.includes(method)) throw methodNotAllowed(PROXIED_METHODS);
      if (target.isPublic) return relayPublic(exchange, target);
      await session.unseal();
      if (method === 'GET' || method === 'HEAD') {
        return relay(exchange, target, await session.enter(method === 'GET' ? 'get' : 'head'), session);
      }
      session.refuseIfFull('change');
      // The body is kept until the head of the response arrives, because a refresh sends it again.
      using body = await readBody(request, admission.relayedBodies);
      return await relay(exchange, target, await session.enter('change'), session, body);
    },
    { parse: 'none' },
  );
}

/** Judges by the headers, because Bun does not expose the body of a GET or HEAD. */
function hasBody({ headers }: Request): boolean {
  return Number(headers.get('content-length') ?? 0) > 0 || headers.has('transfer-encoding');
}

/**
 * Reserves what the body needs. A short one is in memory twice at most. While a slice is read, the one before it may still
 * be on its way to the client.
 *
 * @throws GatewayError as {@link Permit.reserveBody} does
 */
function reserveFor(permit: Permit, { body, headers, isSliced }: UpstreamResponse, sliceBytes: number): void {
  if (!isStreamed(body)) permit.reserveBody(body?.byteLength ?? 0);
  else if (isSliced) permit.reserveBody(1.5 * sliceBytes, sliceBytes);
  else permit.reserveBody(Math.min(STREAMED_BODY_BYTES, 2 * declaredLength(headers)));
}
