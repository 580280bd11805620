/** Passes a streamed body on and observes how it ends: Bun's own stream reports neither its size nor how it ended. */

import type { RequestTrace } from '../trace/request-trace.ts';
import { type BodyReader, cancelQuietly, drain, type Piece } from './body-reader.ts';
import { describeCause } from './error-summary.ts';
import { BEFORE_IDLE_TIMEOUT_MS } from './idle-timeout.ts';
import { ReaderAllowance } from './reader-allowance.ts';

export interface StreamedBody {
  /** The piece that has already been read. */
  readonly firstPiece?: Piece;
  /** Null when the first piece is the whole body. */
  readonly reader: BodyReader | null;
}

/**
 * Yields the same bytes, and notes in the trace how many and how the body ends. Each piece is sent before the next one
 * is read. A direct source copies less than any other, and its connection closes at once when it fails.
 *
 * @param paidMs for a body that is paid for: it is read to its end even when its client has disconnected, for at most
 *   this long
 */
export function observedSource(
  { firstPiece, reader }: StreamedBody,
  trace: RequestTrace,
  paidMs?: number,
): Bun.DirectUnderlyingSource<Piece> {
  const allowance = new ReaderAllowance();
  const { promise: bodyEnd, resolve: end } = Promise.withResolvers<void>();
  trace.bodyEnd = bodyEnd;
  trace.bytes = 0;
  let isOver = false;
  /** When the gateway last asked the upstream for more; infinite while it is not waiting. */
  let waitingSince = Number.POSITIVE_INFINITY;

  const onReaderLost = () => {
    isOver = true;
    trace.clientGone ??= 'streaming';
    if (reader && paidMs !== undefined) return void drain(reader, paidMs).then(end);
    end();
    void cancelQuietly(reader);
  };
  const noteBreak = (cause: string) => {
    isOver = true;
    trace.brokenBody = true;
    trace.cause = cause;
    end();
  };
  const nextPiece = async (): Promise<Piece | undefined> => {
    waitingSince = Date.now();
    const read = await reader?.read();
    waitingSince = Number.POSITIVE_INFINITY;
    return read?.value;
  };
  const pass = async (sink: ReadableStreamDirectController) => {
    for (let piece = firstPiece ?? (await nextPiece()); piece && !isOver; piece = await nextPiece()) {
      const bytes = piece.byteLength;
      trace.bytes = (trace.bytes ?? 0) + bytes;
      const written = sink.write(piece);
      // Bun has sent or copied the piece. This frees its memory without waiting for the garbage collector.
      piece.buffer.transfer(0);
      if (!(written instanceof Promise)) allowance.add(bytes);
      else if (!(await allowance.isTaken(bytes, written)) && !isOver) {
        trace.cause = 'slow reader';
        breakOff(sink);
        onReaderLost();
      }
    }
    if (isOver) return;
    isOver = true;
    end();
    sink.end();
  };
  return {
    type: 'direct',
    pull: (sink) =>
      pass(sink).catch((cause) => {
        if (isOver) return;
        noteBreak(describeCause(cause));
        breakOff(sink);
      }),
    cancel() {
      if (isOver) return;
      if (Date.now() - waitingSince < BEFORE_IDLE_TIMEOUT_MS) return onReaderLost();
      // The upstream was silent for so long that Bun closed the client's connection, so the upstream is to blame.
      noteBreak('stalled');
      void cancelQuietly(reader);
    },
  };
}

/** Resets the connection, so that a partial body never looks complete. The error has no message, because Bun may print it. */
function breakOff(sink: ReadableStreamDirectController): void {
  sink.close(new Error());
}
