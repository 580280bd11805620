/** How long the reader of a streamed body may take: bytes that wait for a slow reader cost memory. */

/** Less than the sparest audio, and more than someone needs who reads only to hold memory. */
const MIN_BYTES_PER_SECOND = 2 * 1024;
const FULL_SECONDS = 60;

/**
 * Bytes that the reader may still owe. It loses them while bytes wait for the reader, at the least rate, and regains
 * what the reader takes. It is full at the start, so that it lasts for 60 s, and lasts long enough for any piece.
 */
export class ReaderAllowance {
  #bytes = FULL_SECONDS * MIN_BYTES_PER_SECOND;
  #pieceBytes = 0;
  /** Since when the piece has waited for the reader; undefined while the reader waits for the upstream. */
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
