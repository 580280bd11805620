/** What one request has reserved. All of it is released together. */

import { CALL_BYTES } from '../../settings/memory.ts';
import type { GatewayError } from '../errors.ts';
import type { Budget } from './budget.ts';
import type { CallRules } from './call-rules.ts';
import type { CountedCall, CountedSession, SessionLimit } from './session-limit.ts';

/** What a call is counted in. */
type Counters = Readonly<Record<'ledger' | CallRules['pool'], Budget> & { perSession: SessionLimit }>;

/** The part of an exchange that a permit waits for. */
interface StreamedExchange {
  readonly bodyEnd: Promise<void> | undefined;
}

/** How long a call waits for memory: the heads of other responses free most of it within milliseconds. */
const PATIENCE_MS = 1000;

export class Permit implements CountedCall {
  readonly isGeneration: boolean;
  bodyBytes = 0;
  readonly #admission: Counters;
  readonly #rules: CallRules;
  #session: CountedSession | undefined;

  /**
   * Counts the call and takes its memory, even when there is none left.
   *
   * @param token identifies the session; undefined for public playback
   */
  constructor(admission: Counters, rules: CallRules, token: string | undefined) {
    this.isGeneration = rules.isGeneration;
    this.#admission = admission;
    this.#rules = rules;
    admission[rules.pool].take(1);
    admission.ledger.take(CALL_BYTES);
    if (token !== undefined) this.#session = admission.perSession.join(token, this);
  }

  /**
   * Reserves these bytes for the body of the response, instead of those before.
   *
   * @throws GatewayError 503 when there is no memory, 429 when the session has its share of it
   */
  reserveBody(bytes: number): void {
    if (!this.tryReserveBody(bytes)) throw this.#refusal(bytes);
  }

  /** @returns whether there is memory, which is then reserved */
  tryReserveBody(bytes: number): boolean {
    const { ledger } = this.#admission;
    const more = bytes - this.bodyBytes;
    if (more > 0 && !(ledger.fits(more, this.#rules.share) && this.#isWithinSession(more))) return false;
    this.bodyBytes = bytes;
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
    const attempt = () => this.tryReserveBody(headBytes);
    if (attempt()) return undefined;
    return this.#admission.ledger.succeeds(attempt, PATIENCE_MS).then((succeeded) => {
      if (!succeeded) throw this.#refusal(headBytes);
    });
  }

  /** Counts the request for the access token with which its session was renewed. @throws GatewayError 429 */
  renewed(accessToken: string): void {
    if (this.#session) this.#session = this.#admission.perSession.move(this.#session, accessToken, this);
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
    const most = this.#admission.ledger.limit * this.#rules.sessionShare;
    return (this.#session?.bytes ?? 0) + more <= most;
  }

  #refusal(bytes: number): GatewayError {
    const { ledger, perSession } = this.#admission;
    return this.#isWithinSession(bytes - this.bodyBytes) ? ledger.refusal() : perSession.refusal();
  }

  #release(): void {
    const { ledger, perSession } = this.#admission;
    if (this.#session) perSession.leave(this.#session, this);
    this.#admission[this.#rules.pool].release(1);
    ledger.release(CALL_BYTES + this.bodyBytes);
  }
}
