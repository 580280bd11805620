/** What one request has reserved. All of it is released together. */

import { CALL_BYTES } from '../../settings/memory.ts';
import type { GatewayError } from '../errors.ts';
import type { Budget } from './budget.ts';
import type { CountedCall, CountedSession, SessionLimit } from './session-limit.ts';

/** How long a call waits for memory: the heads of other responses free most of it within milliseconds. */
const PATIENCE_MS = 1000;

/** What the calls of one kind may have. */
export interface CallRules {
  /** How much of the ledger may be in use once the body has been reserved, and how much of it by one session. */
  readonly share: number;
  readonly sessionShare: number;
  readonly isGeneration: boolean;
  /** How much of the response can arrive before the gateway knows its head. */
  readonly headBytes: number;
}

interface Counters {
  readonly ledger: Budget;
  readonly perSession: SessionLimit;
}

interface StreamedExchange {
  readonly bodyEnd: Promise<void> | undefined;
}

export class Permit implements CountedCall {
  readonly isGeneration: boolean;
  readonly #counters: Counters;
  readonly #pool: Budget;
  readonly #rules: CallRules;
  #session: CountedSession | undefined;
  #bodyBytes = 0;

  /**
   * Takes one of the pool and the memory of a call, even when there is none left.
   *
   * @param token identifies the session; undefined for public playback
   */
  constructor(counters: Counters, pool: Budget, rules: CallRules, token: string | undefined) {
    this.isGeneration = rules.isGeneration;
    this.#counters = counters;
    this.#pool = pool;
    this.#rules = rules;
    pool.take(1);
    counters.ledger.take(CALL_BYTES);
    if (token !== undefined) this.#session = counters.perSession.join(token, this);
  }

  get bodyBytes(): number {
    return this.#bodyBytes;
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
    const { ledger } = this.#counters;
    const more = bytes - this.#bodyBytes;
    if (more > 0 && !(ledger.fits(more, this.#rules.share) && this.#isWithinSession(more))) return false;
    this.#bodyBytes = bytes;
    if (this.#session) this.#session.bytes += more;
    if (more > 0) ledger.take(more);
    if (more < 0) ledger.release(-more);
    return true;
  }

  /**
   * Reserves what can arrive before the head of the response is known. It waits a moment for memory.
   *
   * @returns a promise only when it has to wait, because every call would pay for it
   * @throws GatewayError as {@link reserveBody} does
   */
  reserveHead(): Promise<void> | undefined {
    const { headBytes } = this.#rules;
    if (this.tryReserveBody(headBytes)) return undefined;
    const isReserved = this.#counters.ledger.succeeds(() => this.tryReserveBody(headBytes), PATIENCE_MS);
    return isReserved.then((succeeded) => {
      if (!succeeded) throw this.#refusal(headBytes);
    });
  }

  /** Counts the request for the access token that its session was renewed with. @throws GatewayError 429 */
  renewed(accessToken: string): void {
    if (this.#session) this.#session = this.#counters.perSession.move(this.#session, accessToken, this);
  }

  /** Releases the permit when the work, and the response body that the exchange streams, have ended. */
  async during<Result>(exchange: StreamedExchange, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } finally {
      if (exchange.bodyEnd) void exchange.bodyEnd.then(() => this.#release());
      else this.#release();
    }
  }

  #isWithinSession(more: number): boolean {
    const most = this.#counters.ledger.limit * this.#rules.sessionShare;
    return (this.#session?.bytes ?? 0) + more <= most;
  }

  #refusal(bytes: number): GatewayError {
    const { ledger, perSession } = this.#counters;
    return this.#isWithinSession(bytes - this.#bodyBytes) ? ledger.refusal() : perSession.refusal();
  }

  #release(): void {
    const { ledger, perSession } = this.#counters;
    if (this.#session) perSession.leave(this.#session, this);
    this.#pool.release(1);
    ledger.release(CALL_BYTES + this.#bodyBytes);
  }
}
