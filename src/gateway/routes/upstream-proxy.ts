/** Relays the rest of the upstream's `/v1/` API, with the session's token or without one for public playback. */

import { Elysia } from 'elysia';
import type { Permit } from '../admission/permit.ts';
import type { ResponseMemory } from '../admission/response-memory.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { declaredRequestBytes, type RequestBody, readBodyOrUpload } from '../exchange/request-body.ts';
import { Upload } from '../exchange/upload.ts';
import { CLOSE, GatewayError, methodNotAllowed } from '../http/errors.ts';
import { forwardedRequestHeaders, relayedHeaders, VARY } from '../http/forwarded-headers.ts';
import type { Session, SessionParts, SessionPlugin } from '../session/session.ts';
import { Buffered } from '../upstream/body-modes.ts';
import { type Fetcher, fetchSliced } from '../upstream/fetch-sliced.ts';
import { fetchUpstream, type UpstreamCall } from '../upstream/fetch-upstream.ts';
import { admitBody, RelayedBody } from '../upstream/relayed-body.ts';
import { SlicedAddresses } from '../upstream/sliced-addresses.ts';
import type { UpstreamResponse } from '../upstream/upstream-response.ts';
import { mappingOf, PROXY_PREFIX, parseTarget, type UpstreamTarget } from './proxy-target.ts';
import { isGeneration, relayGeneration } from './relayed-generation.ts';

/** Every method that a browser may send to the gateway; the other routes accept no more. */
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export function upstreamProxyRoutes(parts: SessionParts, sessionPlugin: SessionPlugin) {
  const { settings, api, admission } = parts;
  const { maxUploadBytes, relaySliceBytes: sliceBytes, upstreamUrl } = settings;
  const addresses = new SlicedAddresses();

  /**
   * Calls the upstream and relays its response. Reserves memory before the call, and again when the head is known.
   *
   * @param fetcher makes one call where it is a function, and may fetch slices otherwise
   * @throws GatewayError 400 for a header with a control character, or for a GET or HEAD with a body; 429, 502 or 503 as
   *   the call and {@link ResponseMemory.reserveBody} do
   */
  const relay = async (
    exchange: Exchange,
    target: UpstreamTarget,
    { memory, rules }: Permit,
    fetcher: Fetcher | Fetcher['fetch'],
    body?: RequestBody | Upload,
  ): Promise<Response> => {
    const { request, record } = exchange;
    if (!body && hasBody(request)) throw new GatewayError(400, 'bodyNotAllowed', { headers: CLOSE });
    const { method, signal } = request;
    const call = api.relayedCall({
      name: target.isPublic ? 'public' : 'proxy',
      method,
      url: target.url,
      headers: forwardedRequestHeaders(request),
      signal,
      bodyMode: new RelayedBody(memory, signal),
      ...(body && { body: body instanceof Upload ? body : body.bytes }),
    });
    const path = endpointPath(target, upstreamUrl);
    const starting = memory.start(admission.endpoints.of(method, path, rules.unknownBytes), signal);
    if (starting) await starting;
    const responding =
      typeof fetcher === 'function'
        ? fetcher(call)
        : fetchSliced(call, { sliceBytes, fetcher, record, addresses });
    const upstream = await responding;
    const admitting = admitBody(memory, upstream, sliceBytes, signal);
    if (admitting) await admitting;
    return exchange.respond(upstream.body, upstream.status, headersFor(target, upstream, upstreamUrl));
  };

  const relayPublic = async (exchange: Exchange, target: UpstreamTarget): Promise<Response> => {
    const permit = await admission.enter('public', undefined, exchange);
    const fetch = (call: UpstreamCall) => fetchUpstream(call, exchange.record);
    return relay(exchange, target, permit, { fetch, fetchAfterHead: fetch });
  };

  const relayChange = async (exchange: Exchange, session: Session, target: UpstreamTarget) => {
    const use = session.checkRoom('change');
    // The body is kept until the head of the response arrives, because a refresh sends it again. An upload is not.
    using body = await readBodyOrUpload(exchange.request, admission.relayedBodies, use, maxUploadBytes);
    const permit = await session.enter('change');
    const checkMode = new Buffered((bytes) => permit.memory.reserveWhole(2 * bytes));
    const fetch = (call: UpstreamCall) =>
      body instanceof Upload ? session.fetchOnce(call, checkMode) : session.fetch(call);
    return await relay(exchange, target, permit, fetch, body);
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
      if (isGeneration(request, endpointPath(target, upstreamUrl)))
        return relayGeneration(parts, session, exchange, target);
      return relayChange(exchange, session, target);
    },
    { parse: 'none' },
  );
}

/**
 * Judges by the length, because Bun does not expose the body of a GET or HEAD. Chunks say nothing: proxies in front of
 * HTTP/2 send them without content. Bun drops what else is in them.
 */
function hasBody(request: Request): boolean {
  return declaredRequestBytes(request) > 0;
}

/** Strangers choose the ids of public playback, which must not become endpoints. */
function endpointPath({ url, isPublic }: UpstreamTarget, upstreamUrl: string): string {
  if (isPublic) return url.endsWith('/content') ? '/v1/music/public/0/content' : '/v1/music/public/0';
  const query = url.indexOf('?', upstreamUrl.length);
  return url.slice(upstreamUrl.length, query === -1 ? undefined : query);
}

function headersFor({ url, isPublic }: UpstreamTarget, { headers }: UpstreamResponse, upstreamUrl: string) {
  return relayedHeaders(headers, mappingOf(url, upstreamUrl), isPublic ? VARY.public : VARY.session);
}
