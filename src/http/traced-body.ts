/** Passes a streamed body on, and sees how it ends: Bun's own stream tells neither its size nor its fate. */

import { describeCause } from './cause.ts';
import { IDLE_TIMEOUT_SECONDS } from './idle-timeout.ts';
import type { RequestTrace } from './request-trace.ts';

export type ByteStream = ReadableStream<Uint8Array<ArrayBuffer>>;

/** The idle timeout fires late rather than early, but counts in steps. */
const STALLED_MS = IDLE_TIMEOUT_SECONDS * 1000 - 5000;

/**
 * The same bytes, one piece at a time. It costs 4 ms for 10 MB more than Bun's own stream, which prints the upstream's
 * address to stderr when the upstream breaks off.
 */
export function tracedBody(body: ByteStream, trace: RequestTrace): ByteStream {
  const reader = body.getReader();
  const { promise, resolve: end } = Promise.withResolvers<void>();
  trace.bodyEnd = promise;
  trace.bytes = 0;
  let isCancelled = false;
  /** Since when the upstream has been asked for more. */
  let waitingSince = Number.POSITIVE_INFINITY;
  const breakOff = (cause: string) => {
    trace.brokenBody = true;
    trace.cause = cause;
    end();
  };
  const pass = async (controller: ReadableByteStreamController) => {
    waitingSince = Date.now();
    const { done, value } = await reader.read();
    waitingSince = Number.POSITIVE_INFINITY;
    if (isCancelled) return;
    if (done) {
      end();
      controller.close();
    } else {
      trace.bytes = (trace.bytes ?? 0) + value.byteLength;
      controller.enqueue(value);
    }
  };
  return new ReadableStream({
    // Hands each piece over instead of leaving it to the collector: a third less memory with 100 tracks at once.
    type: 'bytes',
    pull: (controller) =>
      pass(controller).catch((cause) => {
        breakOff(describeCause(cause));
        // The connection is reset, so that a part never looks whole. Given an error before the head has left, Bun would
        // print it, with the upstream's address.
        controller.error();
      }),
    cancel(reason) {
      isCancelled = true;
      // Bun cuts off who has got nothing for so long, although it was the upstream that stood still.
      if (Date.now() - waitingSince >= STALLED_MS) breakOff('stalled');
      else trace.clientGone ??= 'streaming';
      end();
      return reader.cancel(reason);
    },
  });
}
