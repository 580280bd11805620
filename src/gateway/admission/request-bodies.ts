/** Bounds the memory of request bodies: bytes that are arriving, and bytes that are kept for the upstream. */

import { CLOSE, type GatewayError, type PoolName } from '../http/errors.ts';
import { Account, type Books } from './account.ts';
import { LADDER, type Rung } from './ladder.ts';
import { overloaded } from './pool.ts';
import { ARRIVING_BODY_BYTES, BODY_COPIES, UPLOAD_BYTES } from './prices.ts';
import type { SessionUse } from './session-limit.ts';

/** Far more than any generation request or sign-in needs. */
const SMALL_BODY_BYTES = 64 * 1024;

/**
 * Sign-in bodies that together have at most this share of the ledger are admitted as sessions are, so that nobody is kept
 * out by those who play.
 */
const FEW = 1 / 96;

/** The account of one request body. */
export class BodyReservation extends Account {
  readonly #dropping = Promise.withResolvers<never>();
  /** Rejects when the body is dropped. */
  readonly dropped = this.#dropping.promise;
  readonly drop: (error: GatewayError) => void = this.#dropping.reject;

  constructor(books: Books, use: SessionUse | undefined) {
    super(books, use);
    // Prevents an unhandled rejection when nothing awaits it.
    this.dropped.catch(() => {});
  }
}

/**
 * When there is no room, a large body is refused, and the oldest body that is still arriving is dropped for a small one.
 * A normal body arrives within a second, so users are served during a flood of slow ones.
 */
export class RequestBodies {
  readonly name: PoolName;
  readonly #books: Books;
  readonly #rung: Rung;
  readonly #largeRung: Rung;
  /** In order of arrival. */
  readonly #arriving = new Set<BodyReservation>();
  usedBytes = 0;
  refused = 0;

  /** @param largeRung that of a large body */
  constructor(name: PoolName, books: Books, rung: Rung, largeRung = rung) {
    this.name = name;
    this.#books = books;
    this.#rung = rung;
    this.#largeRung = largeRung;
  }

  /**
   * @param use undefined for a sign-in
   * @throws GatewayError 503 when there is no room
   */
  open(declaredBytes: number, use?: SessionUse): BodyReservation {
    const reservation = new BodyReservation(this.#books, use);
    const bytes = ARRIVING_BODY_BYTES + BODY_COPIES * declaredBytes;
    if (declaredBytes > SMALL_BODY_BYTES && !this.#fits(reservation, bytes)) throw this.#refusal();
    this.#arriving.add(reservation);
    this.#growTo(reservation, ARRIVING_BODY_BYTES);
    return reservation;
  }

  /**
   * Reserves what has arrived. When there is no room for it, older bodies that are still arriving are dropped.
   *
   * @throws GatewayError 503 when there is no room and the body is large or the oldest, or when it has been dropped
   */
  grow(reservation: BodyReservation, arrivedBytes: number): void {
    this.#growTo(reservation, reservation.bytes + BODY_COPIES * arrivedBytes);
  }

  #growTo(reservation: BodyReservation, bytes: number): void {
    if (!this.#arriving.has(reservation)) throw overloaded(this.name, CLOSE);
    this.#set(reservation, bytes);
    for (const each of isLarge(bytes) ? [reservation] : this.#arriving) {
      // One that is dropped itself needs no more room.
      if (!this.#arriving.has(reservation) || this.#fits(reservation)) break;
      // A session that has its share drops only its own.
      if (each.use !== reservation.use && !this.#isWithinShare(reservation)) continue;
      this.release(each);
      each.drop(this.#refusal());
    }
    if (!this.#arriving.has(reservation)) throw overloaded(this.name, CLOSE);
  }

  /**
   * Reserves what an upload takes that is streamed, whatever its length.
   *
   * @throws GatewayError 503 when there is no room
   */
  openUpload(use: SessionUse | undefined): BodyReservation {
    const reservation = new BodyReservation(this.#books, use);
    if (!this.#fits(reservation, UPLOAD_BYTES)) throw this.#refusal();
    this.#set(reservation, UPLOAD_BYTES);
    return reservation;
  }

  /** The start of an upload has been sent, and it costs what each does. */
  startIsSent(reservation: BodyReservation): void {
    this.#set(reservation, Math.min(reservation.bytes, UPLOAD_BYTES));
  }

  /** Marks the body as complete, or as an upload: it is no longer dropped to make room for others. */
  arrived(reservation: BodyReservation): void {
    this.#arriving.delete(reservation);
  }

  /** A second call does nothing. */
  release(reservation: BodyReservation): void {
    this.#arriving.delete(reservation);
    this.#set(reservation, 0);
  }

  #set(reservation: BodyReservation, bytes: number): void {
    this.usedBytes += bytes - reservation.bytes;
    reservation.set(bytes);
  }

  #fits(reservation: BodyReservation, bytes = reservation.bytes): boolean {
    const { limit } = this.#books.ledger;
    const isOneOfFew = !reservation.use && this.usedBytes + bytes - reservation.bytes <= limit * FEW;
    const rung = isOneOfFew ? LADDER.session : isLarge(bytes) ? this.#largeRung : this.#rung;
    return this.#isWithinShare(reservation, bytes) && reservation.fits(rung, bytes);
  }

  /** What strangers send never has more than a share together. */
  #isWithinShare(reservation: BodyReservation, bytes = reservation.bytes): boolean {
    if (reservation.use) return reservation.isWithinShare(bytes);
    return this.#books.ledger.isWithinShare(this.usedBytes + bytes - reservation.bytes);
  }

  #refusal(): GatewayError {
    this.refused++;
    this.#books.ledger.noteShort();
    return overloaded(this.name, CLOSE);
  }
}

function isLarge(bytes: number): boolean {
  return bytes > ARRIVING_BODY_BYTES + BODY_COPIES * SMALL_BODY_BYTES;
}
