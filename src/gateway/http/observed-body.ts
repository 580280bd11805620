/** Passes a streamed body on, and sees how it ends: Bun's own stream tells neither its size nor its fate. */

import { traceOf } from '../trace/request-trace.ts';
import { drain } from './drain.ts';
import { describeCause } from './error-summary.ts';
import { type Connection, cutSoon, IDLE_TIMEOUT_SECONDS } from './idle-timeout.ts';
import { ReaderAllowance } from './reader-allowance.ts';

export type ByteStream = ReadableStream<Uint8Array<ArrayBuffer>>;

/** A body that is paid for: it is read to its end, whether its client is still there or not. */
export interface PaidBody {
  /** The piece that has been read already; undefined when the whole body has been. */
  readonly firstPiece: Uint8Array<ArrayBuffer> | undefined;
  /** How long it may be read after its client has gone. */
  readonly longestMs: number;
}

/** The idle timeout fires late rather than early, but counts in steps. */
const STALLED_MS = IDLE_TIMEOUT_SECONDS * 1000 - 5000;
const LOOK_EVERY_MS = 5000;

/**
 * The same bytes, one piece at a time. It costs 4 ms for 10 MB more than Bun's own stream, which prints the upstream's
 * address to stderr when the upstream breaks off.
 */
export function observedBody(body: ByteStream, connection: Connection, paid?: PaidBody): ByteStream {
  const trace = traceOf(connection.request);
  const reader = body.getReader();
  const allowance = new ReaderAllowance();
  const { promise, resolve } = Promise.withResolvers<void>();
  trace.bodyEnd = promise;
  trace.bytes = 0;
  let isOver = false;
  /** Since when the upstream has been asked for more. */
  let waitingSince = Number.POSITIVE_INFINITY;
  let look: Timer | undefined;
  const stop = () => {
    isOver = true;
    clearInterval(look);
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
    // An empty piece would break a stream of bytes.
    while (read.value?.byteLength === 0) read = await reader.read();
    waitingSince = Number.POSITIVE_INFINITY;
    if (isOver) return;
    if (read.done) {
      end();
      controller.close();
    } else passOn(read.value, controller);
  };
  return new ReadableStream({
    // Hands each piece over instead of leaving it to the collector: a third less memory with 100 tracks at once.
    type: 'bytes',
    start(controller) {
      look = setInterval(() => {
        if (!allowance.isSpent(Date.now())) return;
        trace.cause = 'slow reader';
        controller.error();
        // Bun hears of the error only when the reader takes what was there before it.
        cutSoon(connection);
        onClientGone();
      }, LOOK_EVERY_MS);
      if (paid?.firstPiece) passOn(paid.firstPiece, controller);
    },
    pull: (controller) =>
      pass(controller).catch((cause) => {
        if (isOver) return;
        breakOff(describeCause(cause));
        // The connection is reset, so that a part never looks whole. Given an error before the head has left, Bun would
        // print it, with the upstream's address.
        controller.error();
      }),
    cancel() {
      if (Date.now() - waitingSince < STALLED_MS) return onClientGone();
      // Bun cuts off a client that has got nothing for so long, although it was the upstream that stood still.
      breakOff('stalled');
      giveUp();
    },
  });
}
