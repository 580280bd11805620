/** Bounds the memory of request bodies: bytes that are arriving, and bytes that are kept for the upstream. */

import { CLOSE, type GatewayError } from '../http/errors.ts';
import type { Rung } from './ladder.ts';
import type { Ledger } from './ledger.ts';
import { overloaded } from './pool.ts';
import { ARRIVING_BODY_BYTES, BODY_COPIES } from './prices.ts';

/** Far more than any generation request or sign-in needs. */
const SMALL_BODY_BYTES = 64 * 1024;

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
  readonly #rung: Rung;
  readonly #areOfStrangers: boolean;
  /** In order of arrival. */
  readonly #arriving = new Set<BodyReservation>();
  usedBytes = 0;
  refused = 0;

  /** @param areOfStrangers whether anybody can send them, so that all together have no more than a share */
  constructor(ledger: Ledger, rung: Rung, areOfStrangers = false) {
    this.#ledger = ledger;
    this.#rung = rung;
    this.#areOfStrangers = areOfStrangers;
  }

  /** @throws GatewayError 503 when there is no room */
  open(declaredBytes: number): BodyReservation {
    if (declaredBytes > SMALL_BODY_BYTES && !this.#fits(ARRIVING_BODY_BYTES + BODY_COPIES * declaredBytes))
      throw this.#refusal();
    const { promise: dropped, reject: drop } = Promise.withResolvers<never>();
    // Prevents an unhandled rejection when nothing awaits it.
    dropped.catch(() => {});
    const reservation: BodyReservation = { bytes: 0, dropped, drop };
    this.#arriving.add(reservation);
    this.#reserve(reservation, ARRIVING_BODY_BYTES);
    return reservation;
  }

  /**
   * Reserves what has arrived. When there is no room for it, older bodies that are still arriving are dropped.
   *
   * @throws GatewayError 503 when there is no room and the body is large or the oldest, or when it has been dropped
   */
  grow(reservation: BodyReservation, bytes: number): void {
    this.#reserve(reservation, BODY_COPIES * bytes);
  }

  #reserve(reservation: BodyReservation, bytes: number): void {
    if (!this.#arriving.has(reservation)) throw overloaded(CLOSE);
    reservation.bytes += bytes;
    this.usedBytes += bytes;
    this.#ledger.take(bytes);
    const isLarge = reservation.bytes > ARRIVING_BODY_BYTES + BODY_COPIES * SMALL_BODY_BYTES;
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
    const isWithinShare = this.#ledger.isWithinShare(this.usedBytes + bytes);
    const mayHaveMore = !this.#areOfStrangers && !this.#ledger.isScarce(bytes);
    return (isWithinShare || mayHaveMore) && this.#ledger.fits(this.#rung, bytes);
  }

  #refusal(): GatewayError {
    this.refused++;
    return overloaded(CLOSE);
  }
}
