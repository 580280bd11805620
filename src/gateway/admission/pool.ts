/** The places for one kind of call, so that none takes what another needs. */

import { GatewayError, type PoolName } from '../http/errors.ts';
import { proxyStatus } from '../http/proxy-status.ts';
import { WaitingLine } from './waiting-line.ts';

/** Nothing was changed at another server, so the client may repeat the request after a moment. */
export const RETRY_LATER = {
  'retry-after': '5',
  ...proxyStatus('connection_limit_reached'),
};

/** @see RFC 9110 section 10.2.3 (Retry-After), RFC 9209 section 2.3 */
export function overloaded(pool: PoolName, headers: Readonly<Record<string, string>> = {}): GatewayError {
  return new GatewayError(503, 'overloaded', { pool, headers: { ...RETRY_LATER, ...headers } });
}

export class Pool {
  readonly name: PoolName;
  readonly limit: number;
  inUse = 0;
  refused = 0;
  readonly #line: WaitingLine;

  /** @param mostWaiting how many may wait for a place */
  constructor(name: PoolName, limit: number, mostWaiting = Number.POSITIVE_INFINITY) {
    this.name = name;
    this.limit = limit;
    this.#line = new WaitingLine(mostWaiting);
  }

  /** @param share how much of the pool may be in use afterwards */
  hasPlace(share = 1): boolean {
    return this.inUse + 1 <= this.limit * share;
  }

  /** @returns whether there was a place, which then is taken */
  tryTake(share = 1): boolean {
    const isFree = this.hasPlace(share);
    if (isFree) this.inUse++;
    return isFree;
  }

  /** Takes a place as soon as there is one. @throws GatewayError 503 when there is none in time */
  async take(patienceMs: number): Promise<void> {
    if (this.tryTake()) return;
    if (!(await this.#line.wait(() => (this.tryTake() ? 'served' : 'full'), patienceMs)))
      throw this.refusal();
  }

  /** Counts a refusal, and returns its error. */
  refusal(): GatewayError {
    this.refused++;
    return overloaded(this.name);
  }

  release(): void {
    this.inUse--;
    if (!this.#line.isEmpty) this.#line.serve();
  }
}
