/** Passes a streamed body on and observes how it ends: Bun's own stream reports neither its size nor how it ended. */

import type { RequestTrace } from '../trace/request-trace.ts';
import { cancelQuietly, drain } from './drain.ts';
import { describeCause } from './error-summary.ts';
import { BEFORE_IDLE_TIMEOUT_MS, type Connection, cutSoon } from './idle-timeout.ts';
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
  const onReaderLost = () => {
    trace.clientGone ??= 'streaming';
    if (paid) {
      stop();
      void drain(reader, paid.longestMs).then(resolve);
    } else {
      end();
      cancelQuietly(reader);
    }
  };
  const noteBreak = (cause: string) => {
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
        onReaderLost();
      }, CHECK_EVERY_MS);
      if (paid?.firstPiece) passOn(paid.firstPiece, controller);
    },
    pull: (controller) =>
      pass(controller).catch((cause) => {
        if (isOver) return;
        noteBreak(describeCause(cause));
        // Erroring resets the connection, so that a partial body never looks complete. The error is empty: if the head
        // has not been sent, Bun would print the error, with the upstream's address.
        controller.error();
      }),
    cancel() {
      if (Date.now() - waitingSince < BEFORE_IDLE_TIMEOUT_MS) return onReaderLost();
      // The upstream was silent for so long that Bun closed the client's connection, so the upstream is to blame.
      noteBreak('stalled');
      cancelQuietly(reader);
    },
  });
}
