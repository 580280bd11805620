/** A limited amount of bytes or of calls, from which everything is reserved before it is taken. */

import { GatewayError } from '../errors.ts';
import { proxyStatus } from '../proxy-status.ts';

const CHECK_EVERY_MS = 20;
/** All of them are tried again after each release, and their calls keep their memory meanwhile. */
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

/** Reserves what it needs and returns true, or returns false. */
type Attempt = () => boolean;

export class Budget {
  readonly limit: number;
  inUse = 0;
  refused = 0;
  /** The attempts that wait, in order of arrival. */
  readonly #waiting = new Map<Attempt, (succeeded: boolean) => void>();

  constructor(limit: number) {
    this.limit = limit;
  }

  /** @param share how much of the limit may be in use afterwards */
  fits(amount: number, share = 1): boolean {
    return this.inUse + amount <= Math.ceil(this.limit * share);
  }

  /** Even beyond the limit. */
  take(amount: number): void {
    this.inUse += amount;
  }

  /** Takes the amount as soon as it fits. @throws GatewayError 503 when it does not fit in time */
  async reserve(amount: number, patienceMs: number): Promise<void> {
    const attempt = () => {
      const fits = this.fits(amount);
      if (fits) this.take(amount);
      return fits;
    };
    if (!(await this.succeeds(attempt, patienceMs))) throw this.refusal();
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
    for (const [attempt, resolve] of this.#waiting) {
      if (!attempt()) continue;
      this.#waiting.delete(attempt);
      resolve(true);
    }
  }

  /** Makes the attempt now and after each release. Resolves to whether it has succeeded in time. */
  async succeeds(attempt: Attempt, patienceMs: number): Promise<boolean> {
    if (attempt()) return true;
    if (patienceMs <= 0 || this.#waiting.size >= MAX_WAITING) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiting.set(attempt, resolve);
    const timer = setTimeout(() => {
      this.#waiting.delete(attempt);
      resolve(false);
    }, patienceMs);
    return promise.finally(() => clearTimeout(timer));
  }

  /** Resolves within {@link CHECK_EVERY_MS} after everything has been released. */
  async emptied(): Promise<void> {
    while (this.inUse) await Bun.sleep(CHECK_EVERY_MS);
  }
}
