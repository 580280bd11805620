/** Bounds the memory of request bodies: bytes that are arriving, and bytes that are kept for the upstream. */

import { CLOSE, type GatewayError } from '../http/errors.ts';
import { LADDER, type Rung } from './ladder.ts';
import type { Ledger } from './ledger.ts';
import { overloaded } from './pool.ts';
import { ARRIVING_BODY_BYTES, BODY_COPIES, UPLOAD_BYTES } from './prices.ts';
import type { SessionLimit, SessionUse } from './session-limit.ts';

/** Far more than any generation request or sign-in needs. */
const SMALL_BODY_BYTES = 64 * 1024;

/** So much of the ledger sign-ins have as sessions do, so that nobody is kept out by those who play. */
const FEW = 1 / 96;

/** A request body, and what it has reserved. */
export interface BodyReservation {
  bytes: number;
  /** Undefined for that of a sign-in. */
  readonly session: SessionUse | undefined;
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
  readonly #perSession: SessionLimit;
  /** In order of arrival. */
  readonly #arriving = new Set<BodyReservation>();
  usedBytes = 0;
  refused = 0;

  constructor(ledger: Ledger, rung: Rung, perSession: SessionLimit) {
    this.#ledger = ledger;
    this.#rung = rung;
    this.#perSession = perSession;
  }

  /**
   * @param session undefined for a sign-in
   * @throws GatewayError 503 when there is no room
   */
  open(declaredBytes: number, session?: SessionUse): BodyReservation {
    const bytes = ARRIVING_BODY_BYTES + BODY_COPIES * declaredBytes;
    if (declaredBytes > SMALL_BODY_BYTES && !this.#fits(session, bytes)) throw this.#refusal();
    const reservation = this.#newReservation(session);
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

  #newReservation(session: SessionUse | undefined): BodyReservation {
    const { promise: dropped, reject: drop } = Promise.withResolvers<never>();
    // Prevents an unhandled rejection when nothing awaits it.
    dropped.catch(() => {});
    return { bytes: 0, session, dropped, drop };
  }

  #reserve(reservation: BodyReservation, bytes: number): void {
    if (!this.#arriving.has(reservation)) throw overloaded(CLOSE);
    const { session } = reservation;
    this.#take(reservation, bytes);
    const isLarge = reservation.bytes > ARRIVING_BODY_BYTES + BODY_COPIES * SMALL_BODY_BYTES;
    for (const each of isLarge ? [reservation] : this.#arriving) {
      if (this.#fits(session, 0)) break;
      // Nobody makes room for a session that has its share but that session.
      if (each.session !== session && !this.#isWithinShare(session, 0)) continue;
      this.release(each);
      each.drop(this.#refusal());
    }
    if (!this.#arriving.has(reservation)) throw overloaded(CLOSE);
  }

  /**
   * Reserves what an upload takes that is streamed, whatever its length.
   *
   * @throws GatewayError 503 when there is no room
   */
  openUpload(session: SessionUse | undefined): BodyReservation {
    if (!this.#fits(session, UPLOAD_BYTES)) throw this.#refusal();
    const reservation = this.#newReservation(session);
    this.#take(reservation, UPLOAD_BYTES);
    return reservation;
  }

  /** The start of an upload has been sent, and it costs what each does. */
  startIsSent(reservation: BodyReservation): void {
    this.#take(reservation, Math.min(0, UPLOAD_BYTES - reservation.bytes));
  }

  /** Marks the body as complete, or as an upload: it is no longer dropped to make room for others. */
  arrived(reservation: BodyReservation): void {
    this.#arriving.delete(reservation);
  }

  /** A second call does nothing. */
  release(reservation: BodyReservation): void {
    this.#arriving.delete(reservation);
    this.#take(reservation, -reservation.bytes);
  }

  #take(reservation: BodyReservation, bytes: number): void {
    const { session } = reservation;
    reservation.bytes += bytes;
    this.usedBytes += bytes;
    if (bytes < 0) this.#ledger.release(-bytes);
    else this.#ledger.take(bytes);
    if (!session) return;
    session.bytes += bytes;
    this.#perSession.note(session);
  }

  #fits(session: SessionUse | undefined, bytes: number): boolean {
    const isOneOfFew = !session && this.usedBytes + bytes <= this.#ledger.limit * FEW;
    const rung = isOneOfFew ? LADDER.session : this.#rung;
    return this.#isWithinShare(session, bytes) && this.#ledger.fits(rung, bytes);
  }

  /** What strangers send never has more than a share together, and what one session sends not when memory is scarce. */
  #isWithinShare(session: SessionUse | undefined, bytes: number): boolean {
    if (!session) return this.#ledger.isWithinShare(this.usedBytes + bytes);
    return this.#ledger.isWithinShare(session.bytes + bytes) || !this.#ledger.isScarce(bytes);
  }

  #refusal(): GatewayError {
    this.refused++;
    return overloaded(CLOSE);
  }
}
