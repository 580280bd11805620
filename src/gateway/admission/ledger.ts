/** The memory of everything that is admitted: what is reserved for it, and what the kernel charges for it. */

import type { GatewayError } from '../http/errors.ts';
import { LADDER, type Rung } from './ladder.ts';
import { overloaded } from './pool.ts';
import { type Attempt, WaitingLine } from './waiting-line.ts';

/** Sockets can take some 10 MB in this time. */
const READ_EVERY_MS = 10;
/** Beyond this share of the ledger memory is scarce. */
const SCARCE = 1 / 2;
/** What one session may have then, and all that strangers send together at any time. */
const SHARE = 1 / 8;

export class Ledger {
  readonly name = 'memory';
  readonly limit: number;
  /** Reserved bytes. */
  inUse = 0;
  /** Those among them that the kernel cannot have charged, because they have not arrived yet. */
  expected = 0;
  refused = 0;
  readonly #readCharge: () => number;
  /** There was no room for somebody, perhaps because of garbage. */
  readonly noteShort: () => void;
  /** One a rung, from the last to be refused to the first. */
  readonly #lines = new Map<Rung, WaitingLine>(
    Object.values(LADDER)
      .reverse()
      .map((rung) => [rung, new WaitingLine()]),
  );
  #waiting = 0;
  #isServing = false;
  #chargeReadAt = Number.NEGATIVE_INFINITY;
  /** What the kernel had charged at the last reading, and how many reserved bytes had arrived. */
  #charged = 0;
  #arrived = 0;

  /**
   * @param readCharge returns what the kernel charges the process beyond an idle one, in bytes
   * @param noteShort called when somebody begins to wait, who needs {@link serveSoon} also when nothing is released, or is
   *   refused
   */
  constructor(limit: number, readCharge: () => number = () => 0, noteShort: () => void = () => {}) {
    this.limit = limit;
    this.#readCharge = readCharge;
    this.noteShort = noteShort;
  }

  get someWait(): boolean {
    return this.#waiting > 0;
  }

  /**
   * The bytes that were charged at the last reading, and those that arrived later or are about to. What was released
   * since then still counts, because it may only have moved into a socket.
   */
  charged(): number {
    const now = performance.now();
    const arrived = this.inUse - this.expected;
    if (now - this.#chargeReadAt >= READ_EVERY_MS) {
      this.#chargeReadAt = now;
      this.#charged = this.#readCharge();
      this.#arrived = arrived;
    }
    return this.#charged + this.expected + Math.max(0, arrived - this.#arrived);
  }

  /** Whether so much more fits on the rung, both in what is reserved and in what the kernel charges. */
  fits(rung: Rung, bytes: number): boolean {
    const { share, chargedShare = share } = rung;
    return this.inUse + bytes <= this.limit * share && this.charged() + bytes <= this.limit * chargedShare;
  }

  /** Whether one alone may have so much while memory is scarce. */
  isWithinShare(bytes: number): boolean {
    return bytes <= this.limit * SHARE;
  }

  /** Whether memory is scarce once so much more has been reserved. */
  isScarce(bytes = 0): boolean {
    return Math.max(this.inUse, this.charged()) + bytes > this.limit * SCARCE;
  }

  /** Whether the kernel charges more than the rung may use, so that somebody has to give way. */
  isOvercharged(rung: Rung): boolean {
    return this.charged() > this.limit * rung.share;
  }

  /** Reserves even what does not fit. */
  take(bytes: number): void {
    this.inUse += bytes;
  }

  release(bytes: number): void {
    this.inUse -= bytes;
    this.serveSoon();
  }

  nobodyWaits(rung: Rung): boolean {
    return this.#lines.get(rung)?.isEmpty !== false;
  }

  /** Waits in the line of the rung. @see WaitingLine.wait */
  wait(rung: Rung, attempt: () => Attempt, patienceMs: number, signal?: AbortSignal): Promise<boolean> {
    const waiting = this.#lines.get(rung)?.wait(attempt, patienceMs, signal) ?? Promise.resolve(false);
    this.#waiting++;
    this.noteShort();
    // Whoever stands before it may wait for something else than memory.
    this.serveSoon();
    return waiting.finally(() => this.#waiting--);
  }

  /** Reserves as soon as it fits. @throws GatewayError 503 when it does not fit in time */
  async reserve(rung: Rung, bytes: number, patienceMs: number): Promise<void> {
    const attempt = () => {
      if (!this.fits(rung, bytes)) return 'full';
      this.take(bytes);
      return 'served';
    };
    if (this.nobodyWaits(rung) && attempt() === 'served') return;
    if (!(await this.wait(rung, attempt, patienceMs))) throw this.refusal();
  }

  /** Makes the attempts of those who wait, once for all that is released in this turn. */
  serveSoon(): void {
    if (this.#isServing || this.#waiting === 0) return;
    this.#isServing = true;
    queueMicrotask(() => {
      this.#isServing = false;
      for (const line of this.#lines.values()) if (!line.isEmpty) line.serve();
    });
  }

  /** Counts a refusal, and returns its error. */
  refusal(): GatewayError {
    this.refused++;
    this.noteShort();
    return overloaded(this.name);
  }
}
