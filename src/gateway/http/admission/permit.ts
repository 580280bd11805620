/** What one request has reserved. All of it is released together. */

import type { RequestRecord } from '../../record/request-record.ts';
import { CALL_BYTES } from '../../settings/memory.ts';
import type { Budget } from './budget.ts';
import type { CountedSession, SessionLimit } from './session-limit.ts';

/** How long a call waits for memory: the heads of other responses free most of it within milliseconds. */
const PATIENCE_MS = 1000;

interface Kind {
  readonly share: number;
  readonly sessionShare: number;
  readonly isGeneration: boolean;
}

export class Permit {
  readonly #ledger: Budget;
  readonly #perSession: SessionLimit;
  readonly #pool: Budget;
  readonly #kind: Kind;
  #session: CountedSession | undefined;
  #bodyBytes = 0;
  #lastUse: Promise<unknown> | undefined;

  /**
   * Takes a place of the pool and the memory of a call, even when there is none.
   *
   * @param session counts the call already; undefined for public playback
   */
  constructor(
    { ledger, perSession }: { readonly ledger: Budget; readonly perSession: SessionLimit },
    pool: Budget,
    kind: Kind,
    session: CountedSession | undefined,
  ) {
    this.#ledger = ledger;
    this.#perSession = perSession;
    this.#pool = pool;
    this.#kind = kind;
    this.#session = session;
    pool.take(1);
    ledger.take(CALL_BYTES);
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
    if (more > 0 && !(this.#ledger.fits(more, this.#kind.share) && this.#isWithinSession(more))) return false;
    this.#bodyBytes = bytes;
    if (this.#session) this.#session.bytes += more;
    if (more > 0) this.#ledger.take(more);
    if (more < 0) this.#ledger.release(-more);
    return true;
  }

  /**
   * Like {@link reserveBody}, but waits a moment for memory.
   *
   * @returns a promise only when it has to wait, because every call would pay for it
   */
  reserveBodySoon(bytes: number): Promise<void> | undefined {
    if (this.tryReserveBody(bytes)) return undefined;
    const isReserved = this.#ledger.succeeds(() => this.tryReserveBody(bytes), PATIENCE_MS);
    return isReserved.then((succeeded) => {
      if (!succeeded) throw this.#refusal(bytes);
    });
  }

  /** Counts the request for the access token that its session was renewed with. @throws GatewayError 429 */
  renewed(accessToken: string): void {
    const { isGeneration } = this.#kind;
    const before = this.#session;
    if (!before) return;
    this.#session = this.#perSession.move(before, accessToken, isGeneration);
    before.bytes -= this.#bodyBytes;
    this.#session.bytes += this.#bodyBytes;
  }

  /** Keeps the permit until this has ended as well. */
  keepUntil(end: Promise<unknown>): void {
    this.#lastUse = end;
  }

  /** Releases the permit when the work, and the response body that it streams, have ended. */
  async during<Result>(record: RequestRecord, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } finally {
      const lastUse = this.#lastUse ?? record.bodyEnd;
      if (lastUse) void lastUse.then(() => this.#release());
      else this.#release();
    }
  }

  #isWithinSession(more: number): boolean {
    return (this.#session?.bytes ?? 0) + more <= this.#ledger.limit * this.#kind.sessionShare;
  }

  #refusal(bytes: number) {
    const isWithin = this.#isWithinSession(bytes - this.#bodyBytes);
    return isWithin ? this.#ledger.refusal() : this.#perSession.refusal();
  }

  #release(): void {
    const { isGeneration } = this.#kind;
    if (this.#session) {
      this.#session.bytes -= this.#bodyBytes;
      this.#perSession.leave(this.#session, isGeneration);
    }
    this.#pool.release(1);
    this.#ledger.release(CALL_BYTES + this.#bodyBytes);
  }
}
