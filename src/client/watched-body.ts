/** Reads a body piece by piece. A silence counts as a break, because a half-open connection reports none. */

import type { Piece } from './arrived-audio.ts';
import { networkError } from './gateway-request.ts';

export interface WatchedBody {
  /** Undefined at the end. @throws GatewayRequestError after a break, or the reason of the signal */
  next(): Promise<Piece | undefined>;
}

export function watchBody(
  body: ReadableStream<Piece> | null,
  { stallMs, signal }: { readonly stallMs: number; readonly signal: AbortSignal },
): WatchedBody {
  const reader = body?.getReader();
  return {
    async next() {
      if (!reader) return undefined;
      try {
        // `cancel` closes the connection. Its own failure is that of the connection, which is given up anyway.
        const stop = (stall: Error) => void reader.cancel(stall).catch(() => {});
        return (await beforeStall(reader.read(), stallMs, stop)).value;
      } catch (cause) {
        throw networkError(cause, signal, true);
      }
    },
  };
}

/** Returns the result of the work, or rejects when it takes so long; `stop` then has to end it. */
export async function beforeStall<Result>(
  work: Promise<Result>,
  stallMs: number,
  stop: (stall: Error) => void,
): Promise<Result> {
  const { promise: stalled, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const stall = new DOMException(`Nothing has arrived for ${stallMs} ms.`, 'TimeoutError');
    reject(stall);
    stop(stall);
  }, stallMs);
  try {
    return await Promise.race([work, stalled]);
  } finally {
    clearTimeout(timer);
  }
}
