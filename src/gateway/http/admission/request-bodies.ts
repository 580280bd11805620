/** Bounds the memory of request bodies: bytes that are arriving, and bytes that are kept for the upstream. */

import { CLOSE } from '../errors.ts';
import { type Budget, overloaded } from './budget.ts';

/** The cost of a request while its body arrives, whatever the size of the body. */
const OVERHEAD_BYTES = 16 * 1024;
/** Far more than any generation request or sign-in needs. */
const SMALL_BODY_BYTES = 64 * 1024;
/** How much of the ledger all bodies together may use, and how much larger ones may. */
const SHARE = 1 / 4;
const LARGE_BODIES_SHARE = 1 / 8;

/** What one request body has reserved. */
export class BodyShare {
  /** Rejects when the share is taken away to make room for a newer body. */
  readonly shed: Promise<never>;
  readonly #bodies: RequestBodies;
  readonly #reject: (error: unknown) => void;
  #arrivedBytes = 0;
  #isReleased = false;

  constructor(bodies: RequestBodies) {
    const { promise, reject } = Promise.withResolvers<never>();
    // Prevents an unhandled rejection when nothing awaits this promise.
    promise.catch(() => {});
    this.shed = promise;
    this.#reject = reject;
    this.#bodies = bodies;
  }

  get arrivedBytes(): number {
    return this.#arrivedBytes;
  }

  get bytes(): number {
    return OVERHEAD_BYTES + this.#arrivedBytes;
  }

  /** @throws GatewayError 503 when there is no room */
  grow(bytes: number): void {
    if (this.#isReleased) throw overloaded(CLOSE);
    this.#arrivedBytes += bytes;
    this.#bodies.reserve(bytes, this);
  }

  /** Marks the body as complete: it is no longer dropped to make room for others. */
  arrived(): void {
    this.#bodies.arrived(this);
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#bodies.release(this);
  }

  drop(): void {
    this.release();
    this.#reject(overloaded(CLOSE));
  }
}

/**
 * A normal body arrives within a second; one that is sent only to occupy memory does not. So when there is no room, the
 * oldest body that is still arriving is dropped for a small one, and users are served during a flood. A large body is
 * admitted only while there is room.
 */
export class RequestBodies {
  readonly #ledger: Budget;
  #usedBytes = 0;
  #refused = 0;
  /** In order of arrival. */
  readonly #arriving = new Set<BodyShare>();

  constructor(ledger: Budget) {
    this.#ledger = ledger;
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
    this.#ledger.take(bytes);
    if (share.arrivedBytes > SMALL_BODY_BYTES) this.#refuseLarge();
    for (const oldest of this.#arriving) {
      if (this.#usedBytes <= this.#ledger.limit * SHARE && this.#ledger.fits(0)) return;
      this.#refused++;
      oldest.drop();
      if (oldest === share) throw overloaded(CLOSE);
    }
  }

  arrived(share: BodyShare): void {
    this.#arriving.delete(share);
  }

  release(share: BodyShare): void {
    this.#arriving.delete(share);
    this.#usedBytes -= share.bytes;
    this.#ledger.release(share.bytes);
  }

  #refuseLarge(): void {
    const { limit } = this.#ledger;
    if (this.#usedBytes <= limit * LARGE_BODIES_SHARE && this.#ledger.fits(0)) return;
    this.#refused++;
    throw overloaded(CLOSE);
  }
}
