/** Bounds the memory for request bodies: bytes that are arriving and bytes kept for the upstream share one budget. */

import { CLOSE, type GatewayError } from '../errors.ts';
import { overloaded } from './pool.ts';

/** The cost of a request while its body arrives, whatever the size of the body. */
const OVERHEAD_BYTES = 16 * 1024;
/** Far more than any generation request or sign-in needs. */
const SMALL_BODY_BYTES = 64 * 1024;
/** The share of the budget that larger bodies may fill. */
const LARGE_BODIES_SHARE = 1 / 2;

/** The share of the budget that one request body uses. */
export class BodyShare {
  /** Rejects when the share is taken away to make room for a newer body. */
  readonly shed: Promise<never>;
  readonly #budget: BodyBudget;
  readonly #reject: (error: unknown) => void;
  #arrivedBytes = 0;
  #isReleased = false;

  constructor(budget: BodyBudget) {
    const { promise, reject } = Promise.withResolvers<never>();
    // Prevents an unhandled rejection when nothing awaits this promise.
    promise.catch(() => {});
    this.shed = promise;
    this.#reject = reject;
    this.#budget = budget;
  }

  get arrivedBytes(): number {
    return this.#arrivedBytes;
  }

  get bytes(): number {
    return OVERHEAD_BYTES + this.#arrivedBytes;
  }

  /** @throws GatewayError 503 when there is no room */
  grow(bytes: number): void {
    if (this.#isReleased) throw noRoom();
    this.#arrivedBytes += bytes;
    this.#budget.reserve(bytes, this);
  }

  /** Marks the body as complete: it is no longer dropped to make room for others. */
  arrived(): void {
    this.#budget.arrived(this);
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#budget.release(this);
  }

  drop(): void {
    this.release();
    this.#reject(noRoom());
  }
}

/**
 * A normal body arrives within a second; one that is sent only to occupy memory does not. So when the budget is spent,
 * the oldest body that is still arriving is dropped for a small one, and users are served during a flood. A large body
 * is admitted only while there is room.
 */
export class BodyBudget {
  readonly limitBytes: number;
  #usedBytes = 0;
  #refused = 0;
  /** In order of arrival. */
  readonly #arriving = new Set<BodyShare>();

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get refused(): number {
    return this.#refused;
  }

  /** @throws GatewayError 503 when there is no room */
  open(declaredBytes: number): BodyShare {
    if (declaredBytes > SMALL_BODY_BYTES) this.#refuseLarge();
    const share = new BodyShare(this);
    this.#arriving.add(share);
    this.reserve(share.bytes, share);
    return share;
  }

  /**
   * Reserves the bytes, and drops the oldest arriving bodies if needed.
   *
   * @throws GatewayError 503 when `share` is large, or is itself the oldest body that could be dropped
   */
  reserve(bytes: number, share: BodyShare): void {
    this.#usedBytes += bytes;
    if (share.arrivedBytes > SMALL_BODY_BYTES) this.#refuseLarge();
    for (const oldest of this.#arriving) {
      if (this.#usedBytes <= this.limitBytes) return;
      this.#refused++;
      oldest.drop();
      if (oldest === share) throw noRoom();
    }
  }

  arrived(share: BodyShare): void {
    this.#arriving.delete(share);
  }

  release(share: BodyShare): void {
    this.#arriving.delete(share);
    this.#usedBytes -= share.bytes;
  }

  #refuseLarge(): void {
    if (this.#usedBytes <= this.limitBytes * LARGE_BODIES_SHARE) return;
    this.#refused++;
    throw noRoom();
  }
}

function noRoom(): GatewayError {
  return overloaded(CLOSE);
}
