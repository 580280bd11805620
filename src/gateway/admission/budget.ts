/** A limited amount of bytes or of calls, from which everything is reserved before it is taken. */

import { GatewayError } from '../http/errors.ts';
import { proxyStatus } from '../http/proxy-status.ts';
import { type Attempt, WaitingLine } from './waiting-line.ts';

const MAX_WAITING = 500;

/** Nothing was changed at another server, so the client may repeat the request after a moment. */
export const RETRY_LATER = {
  'retry-after': '5',
  ...proxyStatus('connection_limit_reached'),
};

/** @see RFC 9110 section 10.2.3 (Retry-After), RFC 9209 section 2.3 */
export function overloaded(headers: Readonly<Record<string, string>> = {}): GatewayError {
  return new GatewayError(503, 'overloaded', { headers: { ...RETRY_LATER, ...headers } });
}

export class Budget {
  readonly limit: number;
  inUse = 0;
  refused = 0;
  readonly #maxWaiting: number;
  /** Each share has its own line, so that calls which may use less of the limit do not delay others. */
  readonly #lines = new Map<number, WaitingLine>();

  /** @param maxWaiting how many may wait for the same share; each keeps its request in memory */
  constructor(limit: number, maxWaiting = MAX_WAITING) {
    this.limit = limit;
    this.#maxWaiting = maxWaiting;
  }

  /** @param share how much of the limit may be in use afterwards */
  fits(amount: number, share: number): boolean {
    return this.inUse + amount <= Math.ceil(this.limit * share);
  }

  /** Takes it even beyond the limit. */
  take(amount: number): void {
    this.inUse += amount;
  }

  /** @returns whether it fits, and then is taken */
  tryTake(amount: number, share = 1): boolean {
    const fits = this.fits(amount, share);
    if (fits) this.take(amount);
    return fits;
  }

  /** Takes the amount as soon as it fits. @throws GatewayError 503 when it does not fit in time */
  async reserve(amount: number, patienceMs: number): Promise<void> {
    if (!(await this.succeeds(() => this.tryTake(amount), patienceMs))) throw this.refusal();
  }

  /** @throws GatewayError 503 when it does not fit */
  refuseUnlessFits(amount: number, share = 1): void {
    if (!this.fits(amount, share)) throw this.refusal();
  }

  /** Counts a refusal, and returns its error. */
  refusal(): GatewayError {
    this.refused++;
    return overloaded();
  }

  release(amount: number): void {
    this.inUse -= amount;
    this.serveWaiting();
  }

  serveWaiting(): void {
    if (this.#lines.size) for (const line of this.#lines.values()) line.serve();
  }

  /** Makes the attempt now, and then in its turn when something is released. Resolves to whether it has succeeded in time. */
  succeeds(attempt: Attempt, patienceMs: number, share = 1): Promise<boolean> {
    if (attempt()) return Promise.resolve(true);
    const line = this.#lines.get(share) ?? new WaitingLine(this.#maxWaiting);
    this.#lines.set(share, line);
    return line.wait(attempt, patienceMs);
  }
}
