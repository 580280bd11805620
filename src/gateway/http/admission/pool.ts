/** Places for calls in flight: a pool has so many, and refuses the call that would need one more. */

import { traceOf } from '../../trace/request-trace.ts';
import { GatewayError } from '../errors.ts';
import { messages } from '../messages.ts';
import { proxyStatus } from '../proxy-status.ts';

const RETRY_AFTER_SECONDS = 5;
const LOOK_EVERY_MS = 20;

/** Nothing was changed at another server, so the client may send the same again after a moment. */
export const RETRY_LATER = {
  'retry-after': String(RETRY_AFTER_SECONDS),
  ...proxyStatus('connection_limit_reached'),
};

/** @see RFC 9110 section 10.2.3 (Retry-After), RFC 9209 section 2.3 */
export function overloaded(headers: Readonly<Record<string, string>> = {}): GatewayError {
  return new GatewayError(503, messages.overloaded, { headers: { ...RETRY_LATER, ...headers } });
}

/** Gives back what was admitted; called once. */
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
   * @param share of the places that may be in use for one more
   * @throws GatewayError 503 when there is no place
   */
  refuseIfFull(share = 1): void {
    if (this.#inUse < this.limit * share) return;
    this.#refused++;
    throw overloaded();
  }

  /** Takes a place, even one too many. */
  take(): Release {
    this.#inUse++;
    return () => {
      this.#inUse--;
    };
  }

  /** Resolves when no call is in flight, within {@link LOOK_EVERY_MS}. */
  async emptied(): Promise<void> {
    while (this.#inUse) await Bun.sleep(LOOK_EVERY_MS);
  }

  /** @throws GatewayError 503 when there is no place */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.refuseIfFull();
    return this.evenBeyond(work);
  }

  /** For work that must not be refused any more: it takes a place, even one too many. */
  async evenBeyond<Result>(work: () => Promise<Result>): Promise<Result> {
    const release = this.take();
    try {
      return await work();
    } finally {
      release();
    }
  }
}

/** Releases when the work has ended, and so has the body that its response streams. */
export function releasedAtEnd<Result>(
  release: Release,
  request: Request,
  work: Promise<Result>,
): Promise<Result> {
  return work.finally(() => {
    const { bodyEnd } = traceOf(request);
    if (bodyEnd) void bodyEnd.then(release);
    else release();
  });
}
