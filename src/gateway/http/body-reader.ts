/** Reads a body up to a bound, or ends a body that nobody gets. */

export type Chunk = Uint8Array<ArrayBuffer>;
/** The part of a stream's reader that the gateway uses. */
export interface BodyReader {
  read(): Promise<
    | { readonly done: false; readonly value: Chunk }
    | { readonly done: true; readonly value?: Chunk | undefined }
  >;
  cancel(): Promise<void>;
  /** Whether the next read takes what has been reserved already, because it has arrived with the head. */
  readonly hasArrived?: boolean;
}

/** How long the upstream may be silent before the first byte of a streamed body, and in the middle of it. */
export const SILENCE_MS = 60_000;

/** The least that is allocated for a body. */
const FIRST_BYTES = 1024;

/**
 * The bytes of a body so far. The chunks are copied together as they arrive, because each one costs memory of its own,
 * which only the garbage collector would free.
 */
class Joined {
  readonly #limitBytes: number;
  #bytes = new Uint8Array(FIRST_BYTES);
  #size = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** @returns false, and leaves the chunk as it is, when there would be more than the limit */
  add(chunk: Chunk): boolean {
    const whole = this.#size + chunk.byteLength;
    if (whole > this.#limitBytes) return false;
    if (whole > this.#bytes.byteLength)
      this.#bytes = resized(this.#bytes, Math.min(this.#limitBytes, Math.max(whole, 2 * this.#size)));
    this.#bytes.set(chunk, this.#size);
    chunk.buffer.transfer(0);
    this.#size = whole;
    return true;
  }

  take(): Buffer<ArrayBuffer> {
    return Buffer.from(resized(this.#bytes, this.#size).buffer);
  }

  /** Frees at once what was not taken. */
  free(): void {
    if (!this.#bytes.buffer.detached) this.#bytes.buffer.transfer(0);
  }
}

/** Returns all bytes; undefined, after cancelling the rest, for more than `limitBytes`. */
export async function readBounded(
  body: AsyncIterable<Uint8Array<ArrayBuffer>> | null,
  limitBytes: number,
  onChunk?: (bytes: number) => void,
): Promise<Buffer<ArrayBuffer> | undefined> {
  const joined = new Joined(limitBytes);
  try {
    for await (const chunk of body ?? []) {
      onChunk?.(chunk.byteLength);
      if (!joined.add(chunk)) return undefined;
    }
    return joined.take();
  } finally {
    joined.free();
  }
}

/** Returns all bytes, or the first ones of a body of more than `limitBytes`, whose rest the reader still has. */
export async function readStart(
  reader: BodyReader,
  limitBytes: number,
  onChunk: (bytes: number) => void,
): Promise<{ readonly whole: Buffer<ArrayBuffer> } | { readonly start: readonly Chunk[] }> {
  const joined = new Joined(limitBytes);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { whole: joined.take() };
      onChunk(value.byteLength);
      if (!joined.add(value)) return { start: [joined.take(), value] };
    }
  } finally {
    joined.free();
  }
}

/** Keeps the bytes, and frees the memory that they had. */
function resized(bytes: Chunk, length: number): Chunk {
  return new Uint8Array(bytes.buffer.transfer(length));
}

/** Cancels a body that nobody will read, because it would keep its connection open. */
export async function cancelQuietly(body: Pick<BodyReader, 'cancel'> | null): Promise<void> {
  // Cancelling fails when the connection is already closed, which is fine.
  await body?.cancel().catch(() => {});
}

/**
 * Reads and discards the rest of a body whose client has disconnected. Resolves when the body has ended or failed. Gives
 * up after {@link SILENCE_MS} of silence, and after `longestMs`.
 */
export async function drain(reader: BodyReader, longestMs: number): Promise<void> {
  const giveUp = () => cancelQuietly(reader);
  const timer = setTimeout(giveUp, longestMs);
  const silence = setTimeout(giveUp, SILENCE_MS);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      silence.refresh();
      // Frees the memory at once instead of waiting for the garbage collector.
      value.buffer.transfer(0);
    }
  } catch {
    // The upstream broke off, but no client is left to receive an error.
  } finally {
    clearTimeout(timer);
    clearTimeout(silence);
  }
}
