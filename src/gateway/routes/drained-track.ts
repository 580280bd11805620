/** Refuses a generation for whose audio there is no memory, while the upstream finishes it. */

import type { Exchange } from '../exchange/exchange.ts';
import { GatewayError } from '../http/errors.ts';
import { generationHeaders } from '../http/forwarded-headers.ts';
import { proxyStatus } from '../http/proxy-status.ts';
import type { PaidTrack } from '../upstream/paid-track.ts';
import { isSuccess, type UpstreamResponse } from '../upstream/upstream-response.ts';

/**
 * The request is in flight until the track has come to its end. The client finds it in the library by its ids. There is no
 * `Retry-After`, because a repetition could be paid for again.
 *
 * @throws GatewayError 502 when the track is drained; the upstream's own status when that is an error
 */
export function refuseDrained({ drained }: PaidTrack, exchange: Exchange, upstream: UpstreamResponse): void {
  if (!drained) return;
  exchange.keepOpenUntil(drained);
  if (!isSuccess(upstream)) throw new GatewayError(upstream.status, 'generationFailed');
  const ids = Object.entries(generationHeaders(upstream.headers)).filter(([name]) => name.startsWith('x-'));
  throw new GatewayError(502, 'generationNotStreamed', {
    headers: { ...proxyStatus('http_response_incomplete'), ...Object.fromEntries(ids) },
  });
}
