/** Limits how long a client may take to read a streamed body, because unread bytes use memory. */

/** Below the bit rate of any audio, but more than a client would read only to occupy memory. */
const MIN_BYTES_PER_SECOND = 2 * 1024;
const FULL_SECONDS = 60;

/**
 * The bytes that the reader may still fall behind. They decrease at the minimum rate while a piece waits to be read,
 * and each piece that is read adds its size. They start at enough for 60 s, and always cover a whole piece.
 */
export class ReaderAllowance {
  #bytes = FULL_SECONDS * MIN_BYTES_PER_SECOND;
  #pieceBytes = 0;
  /** When the current piece began to wait for the reader; undefined while the reader waits for the upstream. */
  #waitingSince: number | undefined;

  /** @param now in milliseconds */
  pieceWaits(pieceBytes: number, now: number): void {
    this.#pieceBytes = pieceBytes;
    this.#waitingSince = now;
    this.#bytes = Math.max(this.#bytes, pieceBytes);
  }

  pieceTaken(now: number): void {
    if (this.#waitingSince === undefined) return;
    const full = FULL_SECONDS * MIN_BYTES_PER_SECOND;
    this.#bytes = Math.min(full, this.#left(this.#waitingSince, now) + this.#pieceBytes);
    this.#waitingSince = undefined;
  }

  isSpent(now: number): boolean {
    return this.#waitingSince !== undefined && this.#left(this.#waitingSince, now) <= 0;
  }

  #left(waitingSince: number, now: number): number {
    return this.#bytes - ((now - waitingSince) / 1000) * MIN_BYTES_PER_SECOND;
  }
}
