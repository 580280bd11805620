/** Reads a body up to a bound, or ends a body that nobody gets. */

import { IDLE_TIMEOUT_SECONDS } from './idle-timeout.ts';

/** Each chunk also costs memory of its own. No normal client sends so many. */
const MAX_CHUNKS = 16_384;

export type Chunk = Uint8Array<ArrayBuffer>;
/** The part of a stream's reader that the gateway uses. */
export interface BodyReader {
  read(): Promise<
    | { readonly done: false; readonly value: Chunk }
    | { readonly done: true; readonly value?: Chunk | undefined }
  >;
  cancel(): Promise<void>;
}

/** Returns all bytes; undefined, after cancelling the rest, for more than `limitBytes` or {@link MAX_CHUNKS} chunks. */
export async function readBounded(
  body: AsyncIterable<Uint8Array> | null,
  limitBytes: number,
  onChunk?: (bytes: number) => void,
): Promise<Buffer<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    onChunk?.(chunk.byteLength);
    size += chunk.byteLength;
    if (size > limitBytes || chunks.push(chunk) > MAX_CHUNKS) return undefined;
  }
  return Buffer.concat(chunks);
}

/** Cancels a body that nobody will read, because it would keep its connection open. */
export async function cancelQuietly(body: Pick<BodyReader, 'cancel'> | null): Promise<void> {
  // Cancelling fails when the connection is already closed, which is fine.
  await body?.cancel().catch(() => {});
}

/**
 * Reads and discards the rest of a body whose client has disconnected. Resolves when the body has ended or failed. Gives
 * up after 60 s of silence, and after `longestMs`.
 */
export async function drain(reader: BodyReader, longestMs: number): Promise<void> {
  const giveUp = () => cancelQuietly(reader);
  const deadline = setTimeout(giveUp, longestMs);
  const silence = setTimeout(giveUp, IDLE_TIMEOUT_SECONDS * 1000);
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
