/** The memory for request bodies: what arrives, and what is kept for the upstream, comes out of one budget. */

import type { GatewayError } from '../errors.ts';
import { overloaded } from './pool.ts';

/** What a request costs while its body arrives, whatever the body's size. */
const OVERHEAD_BYTES = 16 * 1024;
/** Far more than any order or sign-in has. */
const SMALL_BODY_BYTES = 64 * 1024;
/** The part of the budget that larger bodies may fill. */
const LARGE_BODIES_SHARE = 1 / 2;

/** What one request body has of the budget. */
export class BodyShare {
  /** Rejects when the share is taken away, so that a newer body has room. */
  readonly shed: Promise<never>;
  readonly #budget: BodyBudget;
  readonly #reject: (error: unknown) => void;
  #arrivedBytes = 0;
  #isReleased = false;

  constructor(budget: BodyBudget) {
    const { promise, reject } = Promise.withResolvers<never>();
    // Nothing may wait for it when it rejects.
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
    this.#budget.makeRoom(bytes, this);
  }

  /** The body is whole, and no longer makes room for others. */
  arrived(): void {
    this.#budget.arrived(this);
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#budget.release(this);
  }

  takeAway(): void {
    this.release();
    this.#reject(noRoom());
  }
}

/**
 * A body that is sent as usual is here within a second, and one that is sent to hold memory is not. So when the budget is
 * spent, the oldest body that still arrives makes room for a small one, and users are served during a flood. A large one
 * finds room or is refused.
 */
export class BodyBudget {
  readonly limitBytes: number;
  #usedBytes = 0;
  #refused = 0;
  /** In the order of their arrival. */
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
    this.makeRoom(share.bytes, share);
    return share;
  }

  /** @throws GatewayError 503 when `share` is large, or the oldest that could make room for itself */
  makeRoom(bytes: number, share: BodyShare): void {
    this.#usedBytes += bytes;
    if (share.arrivedBytes > SMALL_BODY_BYTES) this.#refuseLarge();
    for (const oldest of this.#arriving) {
      if (this.#usedBytes <= this.limitBytes) return;
      this.#refused++;
      oldest.takeAway();
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

/** Bun ends the connection with the response; otherwise it would go on taking the body. */
function noRoom(): GatewayError {
  return overloaded({ connection: 'close' });
}
