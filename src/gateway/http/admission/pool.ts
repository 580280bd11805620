/** Bounds the number of calls in flight: a pool refuses a call when all of its places are taken. */

import type { RequestTrace } from '../../trace/request-trace.ts';
import { GatewayError } from '../errors.ts';
import { messages } from '../messages.ts';
import { proxyStatus } from '../proxy-status.ts';

const RETRY_AFTER_SECONDS = 5;
const CHECK_EVERY_MS = 20;

/** Nothing was changed at another server, so the client may repeat the request after a moment. */
export const RETRY_LATER = {
  'retry-after': String(RETRY_AFTER_SECONDS),
  ...proxyStatus('connection_limit_reached'),
};

/** @see RFC 9110 section 10.2.3 (Retry-After), RFC 9209 section 2.3 */
export function overloaded(headers: Readonly<Record<string, string>> = {}): GatewayError {
  return new GatewayError(503, messages.overloaded, { headers: { ...RETRY_LATER, ...headers } });
}

/** Returns the place. Call it once. */
export type Release = () => void;

export class Pool {
  readonly limit: number;
  #inUse = 0;
  #refused = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get inUse(): number {
    return this.#inUse;
  }

  get refused(): number {
    return this.#refused;
  }

  /**
   * @param share refuses when this share of the places, or more, is in use
   * @throws GatewayError 503 when there is no place
   */
  refuseIfFull(share = 1): void {
    if (this.#inUse < this.limit * share) return;
    this.#refused++;
    throw overloaded();
  }

  /** Takes a place, even when the pool is full. */
  take(): Release {
    this.#inUse++;
    return () => {
      this.#inUse--;
    };
  }

  /** Resolves within {@link CHECK_EVERY_MS} after the last call has ended. */
  async emptied(): Promise<void> {
    while (this.#inUse) await Bun.sleep(CHECK_EVERY_MS);
  }

  /** @throws GatewayError 503 when there is no place */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.refuseIfFull();
    return this.duringEvenIfFull(work);
  }

  /** Runs work that must not be refused any more: it takes a place even when the pool is full. */
  async duringEvenIfFull<Result>(work: () => Promise<Result>): Promise<Result> {
    const release = this.take();
    try {
      return await work();
    } finally {
      release();
    }
  }
}

/** Releases the place when the work and the response body that it streams have ended. */
export function releasedAtEnd<Result>(
  release: Release,
  trace: RequestTrace,
  work: Promise<Result>,
): Promise<Result> {
  return work.finally(() => {
    if (trace.bodyEnd) void trace.bodyEnd.then(release);
    else release();
  });
}
