/** A request body that is too long to be kept: it is streamed to the upstream, at the pace of both, and sent once. */

import type { BodyReservation, RequestBodies } from '../admission/request-bodies.ts';
import { type BodyReader, type Chunk, cancelQuietly, SILENCE_MS } from '../http/body-reader.ts';
import { CLOSE, GatewayError } from '../http/errors.ts';

/** How long a client may send nothing or too little. Each second at this rate restores one. */
export const BODY_PATIENCE_MS = 25_000;
export const MIN_BYTES_PER_SECOND = 16 * 1024;
/** What is handed on at a time. An upstream that reads 10 KB/s has sent a larger piece only after minutes. */
const PIECE_BYTES = 64 * 1024;

/** Who has to know how far an upload is. */
interface Observer {
  /** All of it has been handed on. */
  onSent(): void;
  /** The upstream has taken nothing for {@link SILENCE_MS}. */
  onStalled(): void;
}

export class Upload implements Disposable {
  /** Its length, when the client has declared it. Without one, Bun sends it in chunks. */
  readonly headers: Readonly<Record<string, string>>;
  readonly #reader: BodyReader;
  readonly #start: readonly Chunk[];
  readonly #limitBytes: number;
  readonly #bodies: RequestBodies;
  readonly #reservation: BodyReservation;
  #size = 0;
  /** Ends the wait for the client or for the upstream. */
  #timer: Timer | undefined;
  #isStopped = false;
  /** How long the client may still be silent. */
  #patienceMs = BODY_PATIENCE_MS;

  /**
   * @param start what has been read of it
   * @param limitBytes of the whole body
   */
  constructor(
    { headers }: Request,
    reader: BodyReader,
    start: readonly Chunk[],
    limitBytes: number,
    bodies: RequestBodies,
    reservation: BodyReservation,
  ) {
    const length = headers.get('content-length');
    this.headers = length === null ? {} : { 'content-length': length };
    this.#reader = reader;
    this.#start = start;
    this.#limitBytes = limitBytes;
    this.#bodies = bodies;
    this.#reservation = reservation;
  }

  /**
   * The body for the call. It fails with a GatewayError when it cannot be completed, so that the upstream never takes a part
   * for the whole: 413 when it is too large, 408 when the client is too slow, 400 when it breaks off.
   */
  open(observer: Observer): ReadableStream<Chunk> {
    const pieces = this.#pieces(observer);
    // Nothing is asked for before there is a connection.
    this.#timer = setTimeout(() => observer.onStalled(), SILENCE_MS);
    const pull = async (controller: ReadableStreamDefaultController<Chunk>) => {
      clearTimeout(this.#timer);
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    };
    return new ReadableStream({ pull }, { highWaterMark: 0 });
  }

  /** Drops what has not been read, which nobody gets any more. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    void cancelQuietly(this.#reader);
  }

  async *#pieces(observer: Observer): AsyncGenerator<Chunk, void> {
    for await (const chunk of this.#chunks()) {
      this.#size += chunk.byteLength;
      if (this.#size > this.#limitBytes) throw new GatewayError(413, 'uploadTooLarge', { headers: CLOSE });
      for (let at = 0; at < chunk.byteLength; at += PIECE_BYTES) {
        if (this.#isStopped) await new Promise(() => {});
        this.#timer = setTimeout(() => observer.onStalled(), SILENCE_MS);
        yield chunk.subarray(at, at + PIECE_BYTES);
        clearTimeout(this.#timer);
      }
      // Frees the memory at once instead of waiting for the garbage collector.
      chunk.buffer.transfer(0);
    }
    observer.onSent();
  }

  async *#chunks(): AsyncGenerator<Chunk, void> {
    yield* this.#start;
    this.#bodies.startIsSent(this.#reservation);
    for (let read = await this.#read(); !read.done; read = await this.#read()) yield read.value;
  }

  async #read() {
    const since = performance.now();
    let isLate = false;
    const giveUp = () => {
      isLate = true;
      void cancelQuietly(this.#reader);
    };
    this.#timer = setTimeout(giveUp, this.#patienceMs);
    try {
      const read = await this.#reader.read();
      if (isLate) throw new GatewayError(408, 'bodyTooSlow', { headers: CLOSE });
      // The read ends because it was cancelled. The upstream must not take that for the end of the body.
      if (this.#isStopped) await new Promise(() => {});
      const restoredMs = ((read.value?.byteLength ?? 0) / MIN_BYTES_PER_SECOND) * 1000;
      const spentMs = performance.now() - since;
      this.#patienceMs = Math.min(BODY_PATIENCE_MS, this.#patienceMs - spentMs + restoredMs);
      return read;
    } catch (cause) {
      throw cause instanceof GatewayError ? cause : new GatewayError(400, 'bodyIncomplete', { cause });
    } finally {
      clearTimeout(this.#timer);
    }
  }

  [Symbol.dispose](): void {
    this.stop();
    this.#bodies.release(this.#reservation);
  }
}
