/** What one request has reserved: a place in a pool, the memory of its call, and that of the response. */

import type { CallRules } from './calls.ts';
import { LADDER } from './ladder.ts';
import type { Pool } from './pool.ts';
import { CALL_BYTES } from './prices.ts';
import { ResponseMemory, type Shared } from './response-memory.ts';
import type { SessionUse } from './session-limit.ts';

/** How long a session check waits for a place: after a restart every open tab sends one. */
const CHECK_PATIENCE_MS = 2000;

export class Permit {
  readonly rules: CallRules;
  readonly memory: ResponseMemory;
  readonly #shared: Shared;
  readonly #pool: Pool;
  readonly #callBytes: number;
  #hasPlace = false;

  /**
   * Counts the call for its session and takes its memory, even when there is none left.
   *
   * @param session undefined for public playback
   * @param headBytes what the request's head takes beside {@link CALL_BYTES}
   */
  constructor(
    shared: Shared,
    pool: Pool,
    rules: CallRules,
    session: SessionUse | undefined,
    headBytes: number,
  ) {
    this.rules = rules;
    this.memory = new ResponseMemory(shared, rules, session);
    this.#shared = shared;
    this.#pool = pool;
    this.#callBytes = CALL_BYTES + headBytes;
    shared.ledger.take(this.#callBytes);
    this.#count(1);
  }

  /** Takes a place in its pool. A session check waits for one; other calls may last for minutes. */
  takePlace(): Permit | Promise<Permit> {
    this.#hasPlace = this.#pool.tryTake(this.rules.poolShare);
    return this.#hasPlace ? this : this.#waitForPlace();
  }

  async #waitForPlace(): Promise<Permit> {
    // Anybody can make a cookie up, so no more of these wait than there is room for strangers.
    const mayWait = this.rules.pool === 'reads' && this.#shared.ledger.fits(LADDER.guest, 0);
    if (!mayWait) throw this.#pool.refusal();
    await this.#pool.take(CHECK_PATIENCE_MS);
    this.#hasPlace = true;
    return this;
  }

  /** Counts the request for the access token with which its session was renewed. @throws GatewayError 429 */
  renewed(accessToken: string): void {
    // First, because the upstream may issue the same token again, and the call would be refused because of itself.
    this.#count(-1);
    const { session } = this.memory;
    try {
      this.memory.session = session && this.#shared.perSession.useOf(accessToken, this.rules.isGeneration);
    } finally {
      this.#count(1);
    }
  }

  /** Counts the call for its session, or takes it out of the count. */
  #count(by: 1 | -1): void {
    const { session, bodyBytes } = this.memory;
    if (!session) return;
    session.calls += by;
    if (this.rules.isGeneration) session.generations += by;
    session.bytes += by * (this.#callBytes + bodyBytes);
    this.#shared.perSession.note(session);
  }

  /** Gives all back at once. */
  release(): void {
    this.memory.release();
    this.#count(-1);
    if (this.#hasPlace) this.#pool.release();
    this.#shared.ledger.release(this.#callBytes);
  }
}
