/** What one request has reserved. All of it is released together. */

import { CALL_BYTES } from '../../settings/memory.ts';
import type { RequestTrace } from '../../trace/request-trace.ts';
import type { Budget } from './budget.ts';
import type { SessionPlace } from './session-limit.ts';

/** How long a call waits for memory: the heads of other responses free most of it within milliseconds. */
const PATIENCE_MS = 1000;

export class Permit {
  readonly #ledger: Budget;
  readonly #pool: Budget;
  readonly #share: number;
  readonly #session: SessionPlace | undefined;
  #bodyBytes = 0;
  #lastUse: Promise<unknown> | undefined;

  /**
   * Takes over a place of the pool and {@link CALL_BYTES}, which are reserved already.
   *
   * @param share how much of the ledger may be in use after a body has been reserved
   */
  constructor(ledger: Budget, pool: Budget, share: number, session: SessionPlace | undefined) {
    this.#ledger = ledger;
    this.#pool = pool;
    this.#share = share;
    this.#session = session;
  }

  /**
   * Reserves these bytes, instead of those before, for the body of the response.
   *
   * @throws GatewayError 503 when there is no memory, 429 when the session has its share of it
   */
  reserveBody(bytes: number): void {
    if (!this.tryReserveBody(bytes)) throw this.#refusal(bytes);
  }

  /** Whether there is memory, which is reserved then. */
  tryReserveBody(bytes: number): boolean {
    const more = bytes - this.#bodyBytes;
    const fits = this.#ledger.fits(more, this.#share) && this.#session?.fits(more) !== false;
    if (more > 0 && !fits) return false;
    this.#bodyBytes = bytes;
    this.#session?.add(more);
    if (more > 0) this.#ledger.take(more);
    else this.#ledger.release(-more);
    return true;
  }

  /**
   * Like {@link reserveBody}, but waits a moment for memory.
   *
   * @returns a promise only when it has to wait, because every call would pay for it
   */
  reserveBodySoon(bytes: number): Promise<void> | undefined {
    return this.tryReserveBody(bytes) ? undefined : this.#reserveLater(bytes);
  }

  /** Counts the request for the access token that its session has been renewed with. @throws GatewayError 429 */
  renewed(accessToken: string): void {
    this.#session?.renewed(accessToken);
  }

  /** Keeps the permit until this has ended as well. */
  keepUntil(end: Promise<unknown>): void {
    this.#lastUse = end;
  }

  /** Releases the permit when the work, and the response body that it streams, have ended. */
  async during<Result>(trace: RequestTrace, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } finally {
      const lastUse = this.#lastUse ?? trace.bodyEnd;
      if (lastUse) void lastUse.then(() => this.#release());
      else this.#release();
    }
  }

  async #reserveLater(bytes: number): Promise<void> {
    if (!(await this.#ledger.succeeds(() => this.tryReserveBody(bytes), PATIENCE_MS)))
      throw this.#refusal(bytes);
  }

  #refusal(bytes: number) {
    const fits = this.#ledger.fits(bytes - this.#bodyBytes, this.#share);
    return fits && this.#session ? this.#session.refusal() : this.#ledger.refusal();
  }

  #release(): void {
    this.#session?.release();
    this.#pool.release(1);
    this.#ledger.release(CALL_BYTES + this.#bodyBytes);
  }
}
