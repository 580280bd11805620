/** Admits the body of a relayed response. */

import { priceOfSlices, priceOfStream } from '../admission/prices.ts';
import type { ResponseMemory } from '../admission/response-memory.ts';
import { isStreamed } from '../http/body.ts';
import type { RelayedBody } from '../upstream/relayed-body.ts';
import { cancelBody, type UpstreamResponse } from '../upstream/upstream-response.ts';

/**
 * Reserves what the body needs, where {@link RelayedBody} has not done it. Without memory, the body is discarded.
 *
 * @throws GatewayError as {@link ResponseMemory.reserveBody} does
 */
export function admitBody(
  memory: ResponseMemory,
  upstream: UpstreamResponse,
  sliceBytes: number,
  signal: AbortSignal,
): Promise<void> | undefined {
  const { body, status, isSliced } = upstream;
  if (!isStreamed(body)) {
    memory.arrivedWhole(body?.byteLength ?? 0, status);
    return undefined;
  }
  if (!isSliced && status !== 401) return undefined;
  memory.headArrived(Number.POSITIVE_INFINITY, status);
  const price = isSliced ? priceOfSlices(sliceBytes) : priceOfStream(Number.POSITIVE_INFINITY);
  const refuse = async (refusal: unknown) => {
    await cancelBody(upstream);
    throw refusal;
  };
  try {
    return memory.reserveBody(price, Number.POSITIVE_INFINITY, signal)?.catch(refuse);
  } catch (refusal) {
    return refuse(refusal);
  }
}
