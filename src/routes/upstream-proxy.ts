/** Relays the rest of the upstream's `/v1/` API: with the session's token, or without for public playback. */

import { Elysia } from 'elysia';
import { GatewayError } from '../http/errors.ts';
import { forwardedRequestHeaders } from '../http/forwarded-headers.ts';
import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import { messages } from '../http/messages.ts';
import { relay } from '../http/relay.ts';
import { readBody } from '../http/request-body.ts';
import type { SessionPlugin } from '../session/session.ts';
import type { Settings } from '../settings.ts';
import { fetchUpstream, type UpstreamCall } from '../upstream/fetch-upstream.ts';
import { PROXY_PREFIX, parseTarget } from '../upstream/target.ts';

/** Elysia answers HEAD with the handler of GET, whatever is registered for it. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export function upstreamProxyRoutes(settings: Settings, session: SessionPlugin) {
  const { upstreamUrl, timeouts } = settings;
  const routes = new Elysia({ name: 'upstream-proxy' }).use(session);
  for (const registered of METHODS) {
    routes.route(
      registered,
      `${PROXY_PREFIX}/*`,
      async ({ request, server, session }) => {
        const target = parseTarget(request.url, upstreamUrl);
        if (!target) throw new GatewayError(404, messages.notFound);
        const { method } = request;
        const isPublic = target.isPublic && method === 'GET';
        if (!isPublic) session.require();
        const call: UpstreamCall = {
          method,
          url: target.url,
          headers: forwardedRequestHeaders(request),
          ...(method === 'GET' || method === 'HEAD' ? {} : { body: await readBody(request) }),
          timeoutMs: timeouts.streamMs,
          deadline: 'headers',
          signal: request.signal,
        };
        const upstream = isPublic
          ? await withoutIdleTimeout({ request, server }, () => fetchUpstream(call))
          : await session.fetch(call);
        return relay(upstream, { requestUrl: target.url, upstreamUrl, gatewayPath: PROXY_PREFIX });
      },
      { parse: 'none' },
    );
  }
  return routes;
}
