/** What one request has reserved: a place in a pool, the memory of its call, and that of the response. */

import { Account } from './account.ts';
import type { CallRules } from './calls.ts';
import { LADDER } from './ladder.ts';
import type { Pool } from './pool.ts';
import { CALL_BYTES } from './prices.ts';
import { ResponseMemory, type Shared } from './response-memory.ts';
import type { SessionUse } from './session-limit.ts';

/** How long session checks and models wait for a place: after a restart every open tab sends one. */
const CHECK_PATIENCE_MS = 2000;

/** The account of the call. */
export class Permit extends Account {
  readonly rules: CallRules;
  readonly memory: ResponseMemory;
  readonly #pool: Pool;
  #hasPlace = false;

  /**
   * Counts the call for its session and takes its memory: the caller has checked that there is room.
   *
   * @param use what its session has in flight; undefined for public playback
   * @param headBytes what the request's head takes beside {@link CALL_BYTES}
   */
  constructor(shared: Shared, pool: Pool, rules: CallRules, use: SessionUse | undefined, headBytes: number) {
    super(shared, use);
    this.rules = rules;
    this.memory = new ResponseMemory(shared, rules, use);
    this.#pool = pool;
    this.set(CALL_BYTES + headBytes);
    this.#count(1);
  }

  /** Takes a place in its pool. Session checks and models wait for one; other calls may last for minutes. */
  takePlace(): Permit | Promise<Permit> {
    this.#hasPlace = this.#pool.tryTake(this.rules.poolShare);
    return this.#hasPlace ? this : this.#waitForPlace();
  }

  async #waitForPlace(): Promise<Permit> {
    // Anybody can make a cookie up, so no more of these wait than there is room for strangers.
    const mayWait = this.rules.pool === 'reads' && this.books.ledger.fits(LADDER.guest, 0);
    if (!mayWait) throw this.#pool.refusal();
    await this.#pool.take(CHECK_PATIENCE_MS);
    this.#hasPlace = true;
    return this;
  }

  /**
   * Counts the request under the access token with which its session was renewed. Its own body stays with the old one.
   *
   * @throws GatewayError 429
   */
  renewed(accessToken: string): void {
    if (!this.use) return;
    // First, because the upstream may issue the same token again, and the call would be refused because of itself.
    this.#count(-1);
    try {
      const use = this.books.perSession.useOf(accessToken, this.rules.isGeneration);
      this.moveTo(use);
      this.memory.moveTo(use);
    } finally {
      this.#count(1);
    }
  }

  /** Counts the call for its session, or takes it out of the count. */
  #count(by: 1 | -1): void {
    this.books.perSession.count(this.use, this.rules.isGeneration, by);
  }

  /** Gives all back at once. */
  release(): void {
    this.memory.release();
    this.#count(-1);
    if (this.#hasPlace) this.#pool.release();
    this.set(0);
  }
}
