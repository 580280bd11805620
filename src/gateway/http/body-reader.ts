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
 * Returns all bytes; undefined, after cancelling the rest, for more than `limitBytes`. The chunks are copied together as
 * they arrive, because each one costs memory of its own, which only the garbage collector would free.
 */
export async function readBounded(
  body: AsyncIterable<Uint8Array<ArrayBuffer>> | null,
  limitBytes: number,
  onChunk?: (bytes: number) => void,
): Promise<Buffer<ArrayBuffer> | undefined> {
  let bytes = new Uint8Array(FIRST_BYTES);
  let size = 0;
  let isComplete = false;
  try {
    for await (const chunk of body ?? []) {
      onChunk?.(chunk.byteLength);
      const whole = size + chunk.byteLength;
      if (whole > limitBytes) return undefined;
      if (whole > bytes.byteLength) bytes = resized(bytes, Math.min(limitBytes, Math.max(whole, 2 * size)));
      bytes.set(chunk, size);
      chunk.buffer.transfer(0);
      size = whole;
    }
    isComplete = true;
    return Buffer.from(resized(bytes, size).buffer);
  } finally {
    if (!isComplete) bytes.buffer.transfer(0);
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
  const deadline = setTimeout(giveUp, longestMs);
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
    clearTimeout(deadline);
    clearTimeout(silence);
  }
}
