/**
 * Relays a generation of the upstream's own form, with lyrics or a seed: a proxied call with the proxy's headers and
 * statuses, which is admitted, waited for and read to its end as a generation is.
 */

import type { Exchange } from '../exchange/exchange.ts';
import { readBody } from '../exchange/request-body.ts';
import { forwardedRequestHeaders, relayedHeaders, VARY } from '../http/forwarded-headers.ts';
import type { Session, SessionParts } from '../session/session.ts';
import { PaidTrack } from '../upstream/paid-track.ts';
import { admitBody, RelayedBody } from '../upstream/relayed-body.ts';
import { refuseDrained } from './drained-track.ts';
import { mappingOf, type UpstreamTarget } from './proxy-target.ts';

/** Also with more slashes and in capitals, because many servers take that for the same path. */
const PATH = /^\/v1\/+music\/*$/i;
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

/** @param path that of the upstream, without a query */
export function isGeneration({ method, headers }: Request, path: string): boolean {
  const isJson = method === 'POST' && JSON_TYPE.test(headers.get('content-type') ?? '');
  return isJson && PATH.test(decodeURIComponent(path));
}

/**
 * @throws GatewayError as a session's `checkRoom` and `fetch`, as {@link readBody} and as {@link refuseDrained} do;
 *   400 for a header with a control character
 */
export async function relayGeneration(
  { settings, api, admission }: SessionParts,
  session: Session,
  exchange: Exchange,
  { url }: UpstreamTarget,
): Promise<Response> {
  const { request, record } = exchange;
  const { method, signal } = request;
  const { upstreamUrl, timeouts } = settings;
  const use = session.checkRoom('generation');
  // The body is kept until the head of the response arrives, because a refresh sends it again.
  using body = await readBody(request, admission.orderBodies, use);
  const { memory } = await session.enter('generation');
  const headers = forwardedRequestHeaders(request);
  record.lacksIdempotencyKey = headers['idempotency-key'] === undefined;
  const track = new PaidTrack(memory, timeouts.streamMs);
  const call = api.relayedCall({
    name: 'music',
    ...{ method, url, headers, body: body.bytes },
    bodyMode: new RelayedBody(memory, signal, track),
    texts: { late: 'generationTimeout' },
  });
  // Has no signal: a generation is paid for, so it continues when the client disconnects.
  const upstream = await session.fetch(call);
  refuseDrained(track, exchange, upstream);
  const admitting = admitBody(memory, upstream, settings.relaySliceBytes, signal);
  if (admitting) await admitting;
  const relayed = relayedHeaders(upstream.headers, mappingOf(url, upstreamUrl), VARY.session, true);
  return exchange.respond(upstream.body, upstream.status, relayed, timeouts.streamMs);
}
