/** Passes a streamed body on and observes how it ends: Bun's own stream reports neither its size nor how it ended. */

import type { RequestTrace } from '../trace/request-trace.ts';
import { drain } from './drain.ts';
import { describeCause } from './error-summary.ts';
import { type Connection, cutSoon, IDLE_TIMEOUT_SECONDS } from './idle-timeout.ts';
import { ReaderAllowance } from './reader-allowance.ts';

export type ByteStream = ReadableStream<Uint8Array<ArrayBuffer>>;

/** A body that is paid for: it is read to its end even when its client has disconnected. */
export interface PaidBody {
  /** The piece that has already been read; undefined when the body is complete in memory. */
  readonly firstPiece: Uint8Array<ArrayBuffer> | undefined;
  /** How long the body may be read after its client has disconnected. */
  readonly longestMs: number;
}

interface Observed extends Connection {
  readonly trace: RequestTrace;
}

/** Shorter than the idle timeout, which Bun counts in coarse steps. */
const STALLED_MS = IDLE_TIMEOUT_SECONDS * 1000 - 5000;
const CHECK_EVERY_MS = 5000;

/**
 * Yields the same bytes, one piece at a time, and notes in the trace how many and how the body ends. Bun's own stream is a little faster, but prints the upstream's address to
 * stderr when the upstream breaks off.
 */
export function observedBody(body: ByteStream, exchange: Observed, paid?: PaidBody): ByteStream {
  const { trace } = exchange;
  const reader = body.getReader();
  const allowance = new ReaderAllowance();
  const { promise, resolve } = Promise.withResolvers<void>();
  trace.bodyEnd = promise;
  trace.bytes = 0;
  let isOver = false;
  /** When the gateway last asked the upstream for more; infinite while it is not waiting. */
  let waitingSince = Number.POSITIVE_INFINITY;
  let check: Timer | undefined;
  const stop = () => {
    isOver = true;
    clearInterval(check);
  };
  const end = () => {
    stop();
    resolve();
  };
  const giveUp = () => void reader.cancel().catch(() => {});
  const onClientGone = () => {
    trace.clientGone ??= 'streaming';
    if (paid) {
      stop();
      void drain(reader, paid.longestMs).then(resolve);
    } else {
      end();
      giveUp();
    }
  };
  const breakOff = (cause: string) => {
    trace.brokenBody = true;
    trace.cause = cause;
    end();
  };
  const passOn = (piece: Uint8Array<ArrayBuffer>, controller: ReadableByteStreamController) => {
    trace.bytes = (trace.bytes ?? 0) + piece.byteLength;
    allowance.pieceWaits(piece.byteLength, Date.now());
    controller.enqueue(piece);
  };
  const pass = async (controller: ReadableByteStreamController) => {
    waitingSince = Date.now();
    allowance.pieceTaken(waitingSince);
    let read = await reader.read();
    // An empty piece would break a byte stream.
    while (read.value?.byteLength === 0) read = await reader.read();
    waitingSince = Number.POSITIVE_INFINITY;
    if (isOver) return;
    if (read.done) {
      end();
      controller.close();
    } else passOn(read.value, controller);
  };
  return new ReadableStream({
    // A byte stream takes over each piece's buffer instead of leaving it to the garbage collector, which saves memory.
    type: 'bytes',
    start(controller) {
      check = setInterval(() => {
        if (!allowance.isSpent(Date.now())) return;
        trace.cause = 'slow reader';
        controller.error();
        // Bun notices the error only when the client reads the bytes buffered before it.
        cutSoon(exchange);
        onClientGone();
      }, CHECK_EVERY_MS);
      if (paid?.firstPiece) passOn(paid.firstPiece, controller);
    },
    pull: (controller) =>
      pass(controller).catch((cause) => {
        if (isOver) return;
        breakOff(describeCause(cause));
        // Erroring resets the connection, so that a partial body never looks complete. The error is empty: if the head
        // has not been sent, Bun would print the error, with the upstream's address.
        controller.error();
      }),
    cancel() {
      if (Date.now() - waitingSince < STALLED_MS) return onClientGone();
      // Bun cuts off a client that has received nothing for this long, although it was the upstream that stalled.
      breakOff('stalled');
      giveUp();
    },
  });
}
