/** Ends the reading of an upstream's body. */

import { IDLE_TIMEOUT_SECONDS } from './idle-timeout.ts';

export type Chunk = Uint8Array<ArrayBuffer>;
/** The part of a stream's reader that the gateway uses. */
export interface BodyReader {
  read(): Promise<
    | { readonly done: false; readonly value: Chunk }
    | { readonly done: true; readonly value?: Chunk | undefined }
  >;
  cancel(): Promise<void>;
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
