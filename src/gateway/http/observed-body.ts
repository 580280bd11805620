/** Passes a streamed body on and observes how it ends: Bun's own stream reports neither its size nor how it ended. */

import type { RequestRecord } from '../record/request-record.ts';
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

export function isStreamed(body: StreamedBody | Piece | null): body is StreamedBody {
  return body !== null && !(body instanceof Uint8Array);
}

const EMPTY: Piece = new Uint8Array();

/**
 * Yields the same bytes, and notes in the record how many and how the body ends. Each piece is sent before the next one
 * is read. A direct source copies less than any other, and its connection closes at once when it fails.
 *
 * @param paidMs for a body that is paid for: it is read to its end even when its client has disconnected, for at most
 *   this long
 */
export function observedSource(
  { firstPiece, reader }: StreamedBody,
  record: RequestRecord,
  paidMs?: number,
): Bun.DirectUnderlyingSource<Piece> {
  const allowance = new ReaderAllowance();
  const { promise: bodyEnd, resolve: end } = Promise.withResolvers<void>();
  record.bodyEnd = bodyEnd;
  record.bytes = 0;
  let isOver = false;
  /** When the gateway last asked the upstream for more; infinite while it is not waiting. */
  let waitingSince = Number.POSITIVE_INFINITY;

  const onReaderLost = () => {
    isOver = true;
    record.clientGone ??= 'streaming';
    if (reader && paidMs !== undefined) return void drain(reader, paidMs).then(end);
    end();
    void cancelQuietly(reader);
  };
  const noteBreak = (cause: string) => {
    isOver = true;
    record.brokenBody = true;
    record.cause = cause;
    end();
  };
  /** Returns a promise only when the reader has to be waited for, because every piece would pay for it. */
  const write = (piece: Piece, sink: ReadableStreamDirectController): Promise<void> | undefined => {
    const bytes = piece.byteLength;
    if (bytes === 0) return undefined;
    record.bytes = (record.bytes ?? 0) + bytes;
    const written = sink.write(piece);
    // Bun has sent or copied the piece. This frees its memory without waiting for the garbage collector.
    piece.buffer.transfer(0);
    if (written instanceof Promise) return waitForReader(bytes, written, sink);
    allowance.add(bytes);
    return undefined;
  };
  const waitForReader = async (
    bytes: number,
    read: Promise<number>,
    sink: ReadableStreamDirectController,
  ) => {
    if ((await allowance.isTaken(bytes, read)) || isOver) return;
    record.cause = 'slow reader';
    breakOff(sink);
    onReaderLost();
  };
  const pass = async (sink: ReadableStreamDirectController) => {
    let piece: Piece | undefined = firstPiece ?? EMPTY;
    while (piece && !isOver) {
      const waiting = write(piece, sink);
      if (waiting) await waiting;
      waitingSince = Date.now();
      const read = await reader?.read();
      waitingSince = Number.POSITIVE_INFINITY;
      piece = read?.value;
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
