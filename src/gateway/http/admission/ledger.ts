/** The memory of everything that is admitted: what is reserved for it, and what the kernel charges for it. */

import { Budget } from './budget.ts';

/** How much of it bodies and facts of any kind may use: the rest is for calls, such as a refresh. */
export const BEFORE_CALLS = 31 / 32;

/** Sockets can take some 10 MB in this time. */
const READ_EVERY_MS = 10;

export class Ledger extends Budget {
  /** How much of what is reserved has not arrived yet, so that the kernel cannot have charged it. */
  expected = 0;
  /** How much of it is for streamed bodies whose readers do not keep up. */
  borrowed = 0;
  readonly #readCharge: () => number;
  #readAt = Number.NEGATIVE_INFINITY;
  /** What was charged at the last reading, and what had been reserved and had arrived then. */
  #charged = 0;
  #arrived = 0;

  /** @param readCharge returns what the kernel charges the process beyond an idle one, in bytes */
  constructor(limit: number, readCharge: () => number = () => 0) {
    super(limit);
    this.#readCharge = readCharge;
  }

  /**
   * In bytes: what was charged at the last reading, and what it cannot have seen. What was released since then counts,
   * because it may only have moved into a socket.
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

  /** Like {@link fits}, but for what can wait: it must fit beside what is charged, too. */
  hasRoom(amount: number, share: number): boolean {
    return this.fits(amount, share) && this.charged() + amount <= this.limit * share;
  }

  /** Lets others have this memory before the kernel reports that it is free. */
  expectFree(amount: number): void {
    this.#charged -= amount;
  }
}
