/** Relays the rest of the upstream's `/v1/` API, with the session's token or without one for public playback. */

import { Elysia } from 'elysia';
import { type Admission, PUBLIC_SHARE_OF_STREAMS, STREAMED_SHARE } from '../http/admission/admission.ts';
import { releasedAtEnd } from '../http/admission/pool.ts';
import { completeResponse, type Responding } from '../http/complete-response.ts';
import { GatewayError, methodNotAllowed } from '../http/errors.ts';
import { forwardedRequestHeaders } from '../http/forwarded-headers.ts';
import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import { messages } from '../http/messages.ts';
import { relayedHeaders } from '../http/relayed-headers.ts';
import { type RequestBody, readBody } from '../http/request-body.ts';
import type { SessionPlugin } from '../session/session-plugin.ts';
import type { Settings } from '../settings/settings.ts';
import { traceOf } from '../trace/request-trace.ts';
import { fetchUpstream, type UpstreamCall } from '../upstream/fetch-upstream.ts';
import { discard, type UpstreamResponse } from '../upstream/upstream-response.ts';
import { PROXY_PREFIX, parseTarget, type UpstreamTarget } from './proxy-target.ts';

/** Every method that a browser may send to the gateway; the other routes accept no more. */
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

interface RelayContext extends Responding {
  readonly target: UpstreamTarget;
}

export function upstreamProxyRoutes(settings: Settings, session: SessionPlugin, admission: Admission) {
  const { upstreamUrl, timeouts } = settings;
  const { publicDetails, streams, streamedBodies, requestBodies } = admission;

  /** @throws GatewayError 400 for a header that must not be forwarded, or for a GET or HEAD with a body */
  const callOf = ({ request, target }: RelayContext, body?: RequestBody): UpstreamCall => {
    if (!body && hasBody(request)) {
      throw new GatewayError(400, messages.bodyNotAllowed, { headers: { connection: 'close' } });
    }
    return {
      name: 'proxy',
      trace: traceOf(request),
      method: request.method,
      url: target.url,
      headers: forwardedRequestHeaders(request),
      ...(body && { body: body.bytes }),
      timeoutMs: timeouts.streamMs,
      bodyMode: 'streamed',
      signal: request.signal,
    };
  };

  const relay = (upstream: UpstreamResponse, { request, server, set, target }: RelayContext): Response => {
    const mapping = { requestUrl: target.url, upstreamUrl, gatewayPath: PROXY_PREFIX };
    const headers = relayedHeaders(upstream.headers, mapping, String(set.headers['vary']));
    // A cache that kept this response would give its session cookies to others.
    if (set.headers['set-cookie']) headers['cache-control'] = 'no-store';
    return completeResponse({ request, server, set }, upstream.body, upstream.status, headers);
  };

  /**
   * Public audio takes its place among the streamed bodies before the call, because Bun starts to read a body before it
   * could be refused. Track details are short, and do not wait for such a place.
   */
  const relayPublic = (context: RelayContext): Promise<Response> => {
    const isAudio = context.target.url.endsWith('/content');
    streams.refuseIfFull(PUBLIC_SHARE_OF_STREAMS);
    if (isAudio) streamedBodies.refuseIfFull(STREAMED_SHARE.public);
    else publicDetails.refuseIfFull();
    // The call is built before the places are taken: if it threw afterwards, nothing would release them.
    const call: UpstreamCall = { ...callOf(context), name: 'public' };
    const releases = [streams.take(), isAudio ? streamedBodies.take() : publicDetails.take()];
    const release = () => {
      for (const each of releases) each();
    };
    const play = async () =>
      relay(await withoutIdleTimeout(context, timeouts.streamMs, () => fetchUpstream(call)), context);
    return releasedAtEnd(release, context.request, play());
  };

  // One handler for all methods: for HEAD, a GET route of Elysia's would run its handler and set a Content-Length of 0.
  return new Elysia({ name: 'upstream-proxy' }).use(session).all(
    `${PROXY_PREFIX}/*`,
    async ({ request, server, session, set }) => {
      const target = parseTarget(request.url, upstreamUrl);
      if (!target) throw new GatewayError(404, messages.notFound);
      if (!PROXIED_METHODS.includes(request.method)) throw methodNotAllowed(PROXIED_METHODS);
      const context = { request, server, set, target };
      if (target.isPublic && request.method === 'GET') return relayPublic(context);
      const relayWith = (body?: RequestBody) =>
        session.during(streams, async (place) => {
          const upstream = await session.fetch(callOf(context, body));
          await admitStreamed(upstream, () => {
            // Other methods may already have changed something at the upstream, so their response must not be refused.
            if (request.method === 'GET') admission.refuseStreaming(place);
            admission.stream(place);
          });
          return relay(upstream, context);
        });
      if (request.method === 'GET' || request.method === 'HEAD') return relayWith();
      await session.requirePlace(streams);
      // The body is kept until the head of the response arrives, because a refresh sends it again.
      using body = await readBody(request, requestBodies);
      return await relayWith(body);
    },
    { parse: 'none' },
  );
}

/** For GET and HEAD, because Bun does not expose their bodies. */
function hasBody({ headers }: Request): boolean {
  return Number(headers.get('content-length') ?? 0) > 0 || headers.has('transfer-encoding');
}

/** Admits a streamed response, once it is known to be one. The response is discarded when `admit` throws. */
function admitStreamed(upstream: UpstreamResponse, admit: () => void): Promise<void> | undefined {
  if (!(upstream.body instanceof ReadableStream)) return undefined;
  try {
    admit();
    return undefined;
  } catch (refusal) {
    return discard(upstream).then(() => {
      throw refusal;
    });
  }
}
