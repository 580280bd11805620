/** The memory of everything that is admitted: what is reserved for it, and what the kernel charges for it. */

import { Budget } from './budget.ts';

/** How much of the ledger generations, responses and facts may use: the rest is for calls, such as a refresh. */
export const BEFORE_CALLS = 31 / 32;

/** Sockets can take some 10 MB in this time. */
const READ_EVERY_MS = 10;

export class Ledger extends Budget {
  /** Reserved bytes that have not arrived yet, so that the kernel cannot have charged them. */
  expected = 0;
  /** Reserved bytes of streamed bodies whose readers do not keep up. */
  borrowed = 0;
  readonly #readCharge: () => number;
  #readAt = Number.NEGATIVE_INFINITY;
  /** What the kernel had charged at the last reading, and how many reserved bytes had arrived. */
  #charged = 0;
  #arrived = 0;

  /** @param readCharge returns what the kernel charges the process beyond an idle one, in bytes */
  constructor(limit: number, readCharge: () => number = () => 0) {
    super(limit);
    this.#readCharge = readCharge;
  }

  /**
   * The bytes that were charged at the last reading, and those that arrived later or are about to. What was released
   * since then still counts, because it may only have moved into a socket.
   */
  charged(): number {
    const now = performance.now();
    const arrived = this.inUse - this.expected;
    if (now - this.#readAt >= READ_EVERY_MS) {
      this.#readAt = now;
      this.#charged = this.#readCharge();
      this.#arrived = arrived;
    }
    return this.#charged + this.expected + Math.max(0, arrived - this.#arrived);
  }

  /** Like {@link fits}, but also beside what the kernel charges. Calls that keep sessions alive ask only {@link fits}. */
  fitsCharged(amount: number, share: number): boolean {
    return this.fits(amount, share) && this.charged() + amount <= this.limit * share;
  }

  /** Lets others have this memory before the kernel reports that it is free. */
  expectFree(amount: number): void {
    this.#charged -= amount;
  }
}
