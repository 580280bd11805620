/** Bounds the memory of request bodies: bytes that are arriving, and bytes that are kept for the upstream. */

import { CLOSE, type GatewayError } from '../http/errors.ts';
import { overloaded } from './budget.ts';
import type { Ledger } from './ledger.ts';

/** The cost of a request while its body arrives, whatever the size of the body. */
const OVERHEAD_BYTES = 32 * 1024;
/** A body has two copies while its chunks are joined, and while it is sent. */
const COPIES = 2;
/** Far more than any generation request or sign-in needs. */
const SMALL_BODY_BYTES = 64 * 1024;
/** The share of the ledger that all bodies of one kind may use, because strangers can send them. */
const SHARE = 1 / 4;
/** How much of the ledger must be in use for the share to be that of {@link Shares}. */
const BUSY = 13 / 16;

interface Shares {
  /** Their share when much is in use, so that generations get the rest. */
  readonly whenBusy: number;
  /** How much of the ledger may be in use with them. */
  readonly ofLedger: number;
}

/** Bodies that are read and freed at once: they get more than generations, so that sign-ins are read beside those. */
export const READ_HERE: Shares = { whenBusy: 1 / 64, ofLedger: 63 / 64 };
/** Bodies that are kept until the upstream has responded, which may take minutes. */
export const RELAYED: Shares = { whenBusy: 1 / 32, ofLedger: 15 / 16 };

/** A request body, and what it has reserved. */
interface BodyReservation {
  bytes: number;
  /** Rejects when the body is dropped. */
  readonly dropped: Promise<never>;
  readonly drop: (error: GatewayError) => void;
}

/**
 * When there is no room, a large body is refused, and the oldest body that is still arriving is dropped for a small one.
 * A normal body arrives within a second, so users are served during a flood of slow ones.
 */
export class RequestBodies {
  readonly #ledger: Ledger;
  readonly #shares: Shares;
  /** In order of arrival. */
  readonly #arriving = new Set<BodyReservation>();
  usedBytes = 0;
  refused = 0;

  constructor(ledger: Ledger, shares: Shares) {
    this.#ledger = ledger;
    this.#shares = shares;
  }

  /** @throws GatewayError 503 when there is no room */
  open(declaredBytes: number): BodyReservation {
    if (declaredBytes > SMALL_BODY_BYTES && !this.#fits(OVERHEAD_BYTES + COPIES * declaredBytes))
      throw this.#refusal();
    const { promise: dropped, reject: drop } = Promise.withResolvers<never>();
    // Prevents an unhandled rejection when nothing awaits it.
    dropped.catch(() => {});
    const reservation: BodyReservation = { bytes: 0, dropped, drop };
    this.#arriving.add(reservation);
    this.#reserve(reservation, OVERHEAD_BYTES);
    return reservation;
  }

  /**
   * Reserves what has arrived. When there is no room for it, older bodies that are still arriving are dropped.
   *
   * @throws GatewayError 503 when there is no room and the body is large or the oldest, or when it has been dropped
   */
  grow(reservation: BodyReservation, bytes: number): void {
    this.#reserve(reservation, COPIES * bytes);
  }

  #reserve(reservation: BodyReservation, bytes: number): void {
    if (!this.#arriving.has(reservation)) throw overloaded(CLOSE);
    reservation.bytes += bytes;
    this.usedBytes += bytes;
    this.#ledger.take(bytes);
    const isLarge = reservation.bytes > OVERHEAD_BYTES + COPIES * SMALL_BODY_BYTES;
    for (const each of isLarge ? [reservation] : this.#arriving) {
      if (this.#fits(0)) break;
      this.release(each);
      each.drop(this.#refusal());
    }
    if (!this.#arriving.has(reservation)) throw overloaded(CLOSE);
  }

  /** Marks the body as complete: it is no longer dropped to make room for others. */
  arrived(reservation: BodyReservation): void {
    this.#arriving.delete(reservation);
  }

  /** A second call does nothing. */
  release(reservation: BodyReservation): void {
    this.#arriving.delete(reservation);
    this.usedBytes -= reservation.bytes;
    this.#ledger.release(reservation.bytes);
    reservation.bytes = 0;
  }

  #fits(bytes: number): boolean {
    const { whenBusy, ofLedger } = this.#shares;
    const share = this.#ledger.fitsCharged(bytes, BUSY) ? SHARE : whenBusy;
    return this.usedBytes + bytes <= this.#ledger.limit * share && this.#ledger.fits(bytes, ofLedger);
  }

  #refusal(): GatewayError {
    this.refused++;
    return overloaded(CLOSE);
  }
}
