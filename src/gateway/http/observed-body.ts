/** Streams a body and observes how it ends: Bun's own streams report neither their size nor how they ended. */

import type { RequestRecord } from '../record/request-record.ts';
import { type BodyReader, type Chunk, cancelQuietly, drain } from './body-reader.ts';
import { describeCause } from './error-summary.ts';
import { BEFORE_IDLE_TIMEOUT_MS } from './idle-timeout.ts';
import { ReaderAllowance } from './reader-allowance.ts';

export interface StreamedBody {
  /** The chunk that has already been read. */
  readonly firstChunk?: Chunk;
  /** Null when the first chunk is the whole body. */
  readonly reader: BodyReader | null;
}

interface ObservedBody {
  readonly source: Bun.DirectUnderlyingSource<Chunk>;
  /** Resolves when the upstream's side has ended, for whatever reason. */
  readonly end: Promise<void>;
}

export function isStreamed(body: StreamedBody | Chunk | null): body is StreamedBody {
  return body !== null && !(body instanceof Uint8Array);
}

const EMPTY: Chunk = new Uint8Array();

/**
 * Makes a source of the same bytes, and notes in the record how many are sent and how the body ends. Each chunk is sent
 * before the next one is read. A direct source copies less than any other, and its connection closes at once when it fails.
 *
 * @param paidMs how long a body that is paid for is still read after its client has disconnected; undefined for others
 */
export function observe(
  { firstChunk, reader }: StreamedBody,
  record: RequestRecord,
  paidMs?: number,
): ObservedBody {
  const allowance = new ReaderAllowance();
  const { promise, resolve: end } = Promise.withResolvers<void>();
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
  /** Returns a promise only when the reader has to be waited for, because every chunk would pay for it. */
  const write = (chunk: Chunk, sink: ReadableStreamDirectController): Promise<void> | undefined => {
    const bytes = chunk.byteLength;
    if (bytes === 0) return undefined;
    record.bytes = (record.bytes ?? 0) + bytes;
    const written = sink.write(chunk);
    // Bun has sent or copied the chunk. This frees its memory without waiting for the garbage collector.
    chunk.buffer.transfer(0);
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
    let chunk: Chunk | undefined = firstChunk ?? EMPTY;
    while (chunk && !isOver) {
      const waiting = write(chunk, sink);
      if (waiting) await waiting;
      waitingSince = Date.now();
      const read = await reader?.read();
      waitingSince = Number.POSITIVE_INFINITY;
      chunk = read?.value;
    }
    if (isOver) return;
    isOver = true;
    end();
    sink.end();
  };
  const source: Bun.DirectUnderlyingSource<Chunk> = {
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
  return { source, end: promise };
}

/** Resets the connection, so that a partial body never looks complete. The error has no message, because Bun may print it. */
function breakOff(sink: ReadableStreamDirectController): void {
  sink.close(new Error());
}
