/** Relays the rest of the upstream's `/v1/` API, with the session's token or without one for public playback. */

import { Elysia } from 'elysia';
import { CALLS, type CallKind } from '../http/admission/admission.ts';
import type { Permit } from '../http/admission/permit.ts';
import { CLOSE, GatewayError, methodNotAllowed } from '../http/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { forwardedRequestHeaders, relayedHeaders, VARY } from '../http/forwarded-headers.ts';
import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import { isStreamed } from '../http/observed-body.ts';
import { type RequestBody, readBody } from '../http/request-body.ts';
import type { RequestRecord } from '../record/request-record.ts';
import type { SessionParts } from '../session/session.ts';
import type { SessionPlugin } from '../session/session-plugin.ts';
import { STREAMED_BODY_BYTES } from '../settings/memory.ts';
import { type Caller, fetchSliced, longRange } from '../upstream/fetch-sliced.ts';
import { fetchUpstream, longestMs, type UpstreamCall } from '../upstream/fetch-upstream.ts';
import { declaredLength, discard, type UpstreamResponse } from '../upstream/upstream-response.ts';
import { PROXY_PREFIX, parseTarget, type UpstreamTarget } from './proxy-target.ts';

/** Every method that a browser may send to the gateway; the other routes accept no more. */
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export function upstreamProxyRoutes({ api, admission }: SessionParts, session: SessionPlugin) {
  const { sliceBytes } = api;

  /** @throws GatewayError 400 for a header that must not be forwarded, or for a GET or HEAD with a body */
  const callOf = (
    name: 'proxy' | 'public',
    request: Request,
    { url }: UpstreamTarget,
    body?: RequestBody,
  ): UpstreamCall => {
    if (!body && hasBody(request)) {
      throw new GatewayError(400, 'bodyNotAllowed', { headers: CLOSE });
    }
    const { method, signal } = request;
    const headers = forwardedRequestHeaders(request);
    return api.relayedCall(name, { method, url, headers, signal, ...(body && { body: body.bytes }) });
  };

  const relay = (
    exchange: Exchange,
    { url }: UpstreamTarget,
    { body, status, headers }: UpstreamResponse,
    vary: string,
  ): Response => {
    const mapping = { requestUrl: url, upstreamUrl: api.baseUrl, gatewayPath: PROXY_PREFIX };
    return exchange.respond(body, status, relayedHeaders(headers, mapping, vary));
  };

  /** Reserves memory for what can arrive before the response is known, and then for what it needs. */
  const fetchReserved = async (
    kind: CallKind,
    call: UpstreamCall,
    permit: Permit,
    caller: Caller,
    record: RequestRecord,
  ): Promise<UpstreamResponse> => {
    const waiting = permit.reserveBodySoon(CALLS[kind].bodyBytes);
    if (waiting) await waiting;
    const range = longRange(call, sliceBytes);
    const upstream = await (range
      ? fetchSliced(call, range, sliceBytes, caller, record)
      : caller.fetch(call));
    try {
      permit.reserveBody(bodyBytes(upstream, sliceBytes));
      return upstream;
    } catch (refusal) {
      await discard(upstream);
      throw refusal;
    }
  };

  const relayPublic = (exchange: Exchange, target: UpstreamTarget): Promise<Response> => {
    const { request, record } = exchange;
    const call = callOf('public', request, target);
    const permit = admission.enter('public', undefined);
    const caller = {
      fetch: (each: UpstreamCall) =>
        withoutIdleTimeout(exchange, longestMs(each), () => fetchUpstream(each, record)),
      fetchMore: fetchUpstream,
    };
    return permit.during(record, async () =>
      relay(exchange, target, await fetchReserved('public', call, permit, caller, record), VARY.public),
    );
  };

  // One handler for all methods: for HEAD, a GET route of Elysia's would run its handler and set a Content-Length of 0.
  return new Elysia({ name: 'upstream-proxy' }).use(session).all(
    `${PROXY_PREFIX}/*`,
    async ({ request, session, exchange }) => {
      const target = parseTarget(request.url, api.baseUrl);
      if (!target) throw new GatewayError(404, 'notFound');
      const { method } = request;
      if (!PROXIED_METHODS.includes(method)) throw methodNotAllowed(PROXIED_METHODS);
      if (target.isPublic && method === 'GET') return relayPublic(exchange, target);
      const relayWith = (kind: CallKind, body?: RequestBody) =>
        session.during(kind, async (permit) => {
          const call = callOf('proxy', request, target, body);
          const upstream = await fetchReserved(kind, call, permit, session, exchange.record);
          return relay(exchange, target, upstream, VARY.session);
        });
      if (method === 'GET') return relayWith('get');
      if (method === 'HEAD') return relayWith('head');
      await session.refuseIfFull('change');
      // The body is kept until the head of the response arrives, because a refresh sends it again.
      using body = await readBody(request, admission.requestBodies);
      return await relayWith('change', body);
    },
    { parse: 'none' },
  );
}

/** Judges by the headers, because Bun does not expose the body of a GET or HEAD. */
function hasBody({ headers }: Request): boolean {
  return Number(headers.get('content-length') ?? 0) > 0 || headers.has('transfer-encoding');
}

/** How much memory the body needs when its reader is slow. A short one is in memory twice at most. */
function bodyBytes({ body, headers, isSliced }: UpstreamResponse, sliceBytes: number): number {
  if (!isStreamed(body)) return body?.byteLength ?? 0;
  return isSliced ? sliceBytes : Math.min(STREAMED_BODY_BYTES, 2 * declaredLength(headers));
}
