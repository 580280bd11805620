/** Relays the rest of the upstream's `/v1/` API: with the session's token, or without for public playback. */

import { Elysia } from 'elysia';
import { GatewayError, methodNotAllowed } from '../http/errors.ts';
import { forwardedRequestHeaders } from '../http/forwarded-headers.ts';
import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import { messages } from '../http/messages.ts';
import { nativeResponse } from '../http/native-response.ts';
import { refuseOverload } from '../http/overload.ts';
import { relayedHeaders } from '../http/relayed-headers.ts';
import { readBody } from '../http/request-body.ts';
import { traceOf } from '../http/request-trace.ts';
import type { SessionPlugin } from '../session/session.ts';
import type { Settings } from '../settings.ts';
import { fetchUpstream, type UpstreamCall } from '../upstream/fetch-upstream.ts';
import { PROXY_PREFIX, parseTarget } from '../upstream/target.ts';

/** All that a browser may send to the gateway; no other route takes more. */
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export function upstreamProxyRoutes(settings: Settings, session: SessionPlugin) {
  const { upstreamUrl, timeouts } = settings;
  // Not a route for each method: Elysia would answer HEAD with the handler of GET and count a length of 0.
  return new Elysia({ name: 'upstream-proxy' }).use(session).all(
    `${PROXY_PREFIX}/*`,
    async ({ request, server, session, set }) => {
      const { method } = request;
      const target = parseTarget(request.url, upstreamUrl);
      if (!target) throw new GatewayError(404, messages.notFound);
      if (!PROXIED_METHODS.includes(method)) throw methodNotAllowed(PROXIED_METHODS);
      const isPublic = target.isPublic && method === 'GET';
      if (!isPublic) await session.requireTokens();
      refuseOverload(server, settings.maxHeldRequests);
      const call: UpstreamCall = {
        name: 'proxy',
        trace: traceOf(request),
        method,
        url: target.url,
        headers: forwardedRequestHeaders(request),
        ...(method === 'GET' || method === 'HEAD' ? {} : { body: await readBody(request) }),
        timeoutMs: timeouts.streamMs,
        answer: 'streamed',
        signal: request.signal,
      };
      const upstream = isPublic
        ? await withoutIdleTimeout({ request, server }, call.timeoutMs, () =>
            fetchUpstream({ ...call, name: 'public' }),
          )
        : await session.fetch(call);
      const headers = relayedHeaders(upstream.headers, {
        requestUrl: target.url,
        upstreamUrl,
        gatewayPath: PROXY_PREFIX,
      });
      // A cache that kept it would hand out the new session cookies with it.
      if (set.headers['set-cookie']) headers['cache-control'] = 'no-store';
      return nativeResponse({ request, set }, upstream.body, upstream.status, headers);
    },
    { parse: 'none' },
  );
}
