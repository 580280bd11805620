/** Bounds the memory of request bodies: bytes that are arriving, and bytes that are kept for the upstream. */

import { CLOSE } from '../errors.ts';
import { type Budget, overloaded } from './budget.ts';

/** The cost of a request while its body arrives, whatever the size of the body. */
const OVERHEAD_BYTES = 16 * 1024;
/** Far more than any generation request or sign-in needs. */
const SMALL_BODY_BYTES = 64 * 1024;
/** How much of the ledger all bodies together may use, and how much when this share of it is in use. */
const SHARE = 1 / 4;
const SHARE_WHEN_BUSY = 1 / 32;
const BUSY = 3 / 4;

/**
 * A normal body arrives within a second; one that is sent only to occupy memory does not. So when there is no room, the
 * oldest body that is still arriving is dropped for a small one, and users are served during a flood. A large body is
 * refused then.
 */
export class RequestBodies {
  readonly #ledger: Budget;
  usedBytes = 0;
  refused = 0;
  /** In order of arrival. */
  readonly arriving = new Set<BodyShare>();

  constructor(ledger: Budget) {
    this.#ledger = ledger;
  }

  /** @throws GatewayError 503 when there is no room */
  open(declaredBytes: number): BodyShare {
    if (declaredBytes > SMALL_BODY_BYTES && !this.#fits(OVERHEAD_BYTES + declaredBytes)) {
      this.refused++;
      throw overloaded(CLOSE);
    }
    const share = new BodyShare(this);
    this.arriving.add(share);
    this.reserve(OVERHEAD_BYTES, share);
    return share;
  }

  /** @throws GatewayError 503 when `share` is large, or is itself the oldest body that could be dropped */
  reserve(bytes: number, share: BodyShare): void {
    this.usedBytes += bytes;
    this.#ledger.take(bytes);
    const isLarge = share.arrivedBytes > SMALL_BODY_BYTES;
    for (const body of isLarge ? [share] : this.arriving) {
      if (this.#fits(0)) return;
      this.refused++;
      body.drop();
      if (body === share) throw overloaded(CLOSE);
    }
  }

  release(share: BodyShare): void {
    this.arriving.delete(share);
    this.usedBytes -= share.bytes;
    this.#ledger.release(share.bytes);
  }

  #fits(bytes: number): boolean {
    // Arriving bodies, which strangers can send, must not take the memory of generations.
    const share = this.#ledger.fits(bytes, BUSY) ? SHARE : SHARE_WHEN_BUSY;
    return this.usedBytes + bytes <= this.#ledger.limit * share && this.#ledger.fits(bytes);
  }
}

/** What one request body has reserved. */
export class BodyShare {
  arrivedBytes = 0;
  readonly #bodies: RequestBodies;
  readonly #shed = Promise.withResolvers<never>();
  #isReleased = false;

  constructor(bodies: RequestBodies) {
    this.#bodies = bodies;
    // Prevents an unhandled rejection when nothing awaits it.
    this.#shed.promise.catch(() => {});
  }

  /** Rejects when the share is taken away to make room for a newer body. */
  get shed(): Promise<never> {
    return this.#shed.promise;
  }

  get bytes(): number {
    return OVERHEAD_BYTES + this.arrivedBytes;
  }

  /** @throws GatewayError 503 when there is no room */
  grow(bytes: number): void {
    if (this.#isReleased) throw overloaded(CLOSE);
    this.arrivedBytes += bytes;
    this.#bodies.reserve(bytes, this);
  }

  /** Marks the body as complete: it is no longer dropped to make room for others. */
  arrived(): void {
    this.#bodies.arriving.delete(this);
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#bodies.release(this);
  }

  drop(): void {
    this.release();
    this.#shed.reject(overloaded(CLOSE));
  }
}
