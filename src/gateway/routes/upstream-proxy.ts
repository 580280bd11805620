/** Relays the rest of the upstream's `/v1/` API, with the session's token or without one for public playback. */

import { Elysia } from 'elysia';
import { PUBLIC_SHARE_OF_STREAMS, STREAMED_SHARE } from '../http/admission/admission.ts';
import { releasedAtEnd } from '../http/admission/pool.ts';
import { CLOSE, GatewayError, methodNotAllowed } from '../http/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { forwardedRequestHeaders } from '../http/forwarded-headers.ts';
import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import { messages } from '../http/messages.ts';
import { isStreamed } from '../http/observed-body.ts';
import { relayedHeaders } from '../http/relayed-headers.ts';
import { type RequestBody, readBody } from '../http/request-body.ts';
import type { SessionParts } from '../session/session.ts';
import type { SessionPlugin } from '../session/session-plugin.ts';
import { fetchUpstream, longestMs, type UpstreamCall } from '../upstream/fetch-upstream.ts';
import { discard, type UpstreamResponse } from '../upstream/upstream-response.ts';
import { PROXY_PREFIX, parseTarget, type UpstreamTarget } from './proxy-target.ts';

/** Every method that a browser may send to the gateway; the other routes accept no more. */
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export function upstreamProxyRoutes({ api, admission }: SessionParts, session: SessionPlugin) {
  const { publicDetails, streams, streamedBodies, requestBodies } = admission;

  /** @throws GatewayError 400 for a header that must not be forwarded, or for a GET or HEAD with a body */
  const callOf = (
    name: 'proxy' | 'public',
    request: Request,
    { url }: UpstreamTarget,
    body?: RequestBody,
  ): UpstreamCall => {
    if (!body && hasBody(request)) {
      throw new GatewayError(400, messages.bodyNotAllowed, { headers: CLOSE });
    }
    const { method, signal } = request;
    const headers = forwardedRequestHeaders(request);
    return api.relayedCall(name, { method, url, headers, signal, ...(body && { body: body.bytes }) });
  };

  // The CORS plugin has set `Vary`, and `session.fetch` has added `Cookie`.
  const relay = (exchange: Exchange, target: UpstreamTarget, upstream: UpstreamResponse): Response => {
    const { headers: own } = exchange.set;
    const mapping = { requestUrl: target.url, upstreamUrl: api.baseUrl, gatewayPath: PROXY_PREFIX };
    const headers = relayedHeaders(upstream.headers, mapping, String(own['vary']));
    // A cache that kept this response would give its session cookies to others.
    if (own['set-cookie']) headers['cache-control'] = 'no-store';
    return exchange.respond(upstream.body, upstream.status, headers);
  };

  /**
   * Public audio takes its place among the streamed bodies before the call: once the response has begun, Bun reads its
   * body ahead, so a refusal would come too late. Track details are short and need no such place.
   */
  const relayPublic = (exchange: Exchange, target: UpstreamTarget): Promise<Response> => {
    const { request, trace } = exchange;
    const isAudio = target.url.endsWith('/content');
    streams.refuseIfFull(PUBLIC_SHARE_OF_STREAMS);
    if (isAudio) streamedBodies.refuseIfFull(STREAMED_SHARE.public);
    else publicDetails.refuseIfFull();
    // The call is built before the places are taken: if it threw afterwards, nothing would release them.
    const call = callOf('public', request, target);
    const releases = [streams.take(), isAudio ? streamedBodies.take() : publicDetails.take()];
    const release = () => {
      for (const each of releases) each();
    };
    const played = withoutIdleTimeout(exchange, longestMs(call), () => fetchUpstream(call, trace));
    return releasedAtEnd(
      release,
      trace,
      played.then((upstream) => relay(exchange, target, upstream)),
    );
  };

  // One handler for all methods: for HEAD, a GET route of Elysia's would run its handler and set a Content-Length of 0.
  return new Elysia({ name: 'upstream-proxy' }).use(session).all(
    `${PROXY_PREFIX}/*`,
    async ({ request, session, exchange }) => {
      const target = parseTarget(request.url, api.baseUrl);
      if (!target) throw new GatewayError(404, messages.notFound);
      if (!PROXIED_METHODS.includes(request.method)) throw methodNotAllowed(PROXIED_METHODS);
      if (target.isPublic && request.method === 'GET') return relayPublic(exchange, target);
      const relayWith = (body?: RequestBody) =>
        session.during(streams, async (place) => {
          const upstream = await session.fetch(callOf('proxy', request, target, body));
          await admitStreamed(upstream, () => {
            // Other methods may already have changed something at the upstream, so their response must not be refused.
            if (request.method === 'GET') admission.refuseStreaming(place);
            admission.stream(place);
          });
          return relay(exchange, target, upstream);
        });
      if (request.method === 'GET' || request.method === 'HEAD') return relayWith();
      await session.refuseIfNoPlace(streams);
      // The body is kept until the head of the response arrives, because a refresh sends it again.
      using body = await readBody(request, requestBodies);
      return await relayWith(body);
    },
    { parse: 'none' },
  );
}

/** Judges by the headers, because Bun does not expose the body of a GET or HEAD. */
function hasBody({ headers }: Request): boolean {
  return Number(headers.get('content-length') ?? 0) > 0 || headers.has('transfer-encoding');
}

/** Admits a streamed response, once it is known to be one. The response is discarded when `admit` throws. */
function admitStreamed(upstream: UpstreamResponse, admit: () => void): Promise<void> | undefined {
  if (!isStreamed(upstream.body)) return undefined;
  try {
    admit();
    return undefined;
  } catch (refusal) {
    return discard(upstream).then(() => {
      throw refusal;
    });
  }
}
