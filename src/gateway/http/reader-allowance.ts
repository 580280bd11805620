/** Limits how long a client may take to read a streamed body, because unread bytes use memory. */

/** Below the bit rate of any audio, but more than a client would read only to occupy memory. */
const MIN_BYTES_PER_SECOND = 2 * 1024;
const FULL_BYTES = 60 * MIN_BYTES_PER_SECOND;

/**
 * The bytes that the reader may still fall behind. They decrease at the minimum rate while a chunk waits to be read,
 * and each chunk that is read adds its size. They start at enough for 60 s, and always cover a whole chunk.
 */
export class ReaderAllowance {
  #bytes = FULL_BYTES;

  /** Adds a chunk that was read at once. */
  add(chunkBytes: number): void {
    this.#bytes = Math.min(FULL_BYTES, this.#bytes + chunkBytes);
  }

  /** Waits until the chunk has been read. Resolves to false when the allowance is spent before. */
  async isTaken(chunkBytes: number, read: Promise<unknown>): Promise<boolean> {
    this.#bytes = Math.max(this.#bytes, chunkBytes);
    const waitingSince = performance.now();
    const { promise: spent, resolve } = Promise.withResolvers<false>();
    const timer = setTimeout(() => resolve(false), (this.#bytes / MIN_BYTES_PER_SECOND) * 1000);
    const isTaken = await Promise.race([read.then(() => true), spent]);
    clearTimeout(timer);
    const waitedSeconds = (performance.now() - waitingSince) / 1000;
    this.#bytes -= waitedSeconds * MIN_BYTES_PER_SECOND;
    this.add(chunkBytes);
    return isTaken;
  }
}
