/** Bounds how many sign-outs that may be made up an instance keeps in Redis. */

/** About 200 bytes each: 2 MB. */
const MAX_UNKNOWN_SIGN_OUTS = 10_000;

/** A ring, 80 KB. All places are taken for about equally long, so the next one becomes free first. */
export class SignOutPlaces {
  readonly #freeAt = new Float64Array(MAX_UNKNOWN_SIGN_OUTS);
  readonly #now: () => number;
  #next = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes a place; undefined when none is free. The returned function frees the place early. */
  take(lifetimeMs: number): (() => void) | undefined {
    const place = this.#next;
    if ((this.#freeAt[place] ?? 0) > this.#now()) return undefined;
    this.#freeAt[place] = this.#now() + lifetimeMs;
    this.#next = (place + 1) % this.#freeAt.length;
    return () => {
      this.#freeAt[place] = 0;
    };
  }
}
