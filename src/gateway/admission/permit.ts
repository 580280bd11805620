/** What one request has reserved. All of it is released together. */

import type { GatewayError } from '../http/errors.ts';
import { CALL_BYTES, STREAM_BASE_BYTES, STREAMED_BODY_BYTES } from '../settings/memory.ts';
import type { BodyMemory, BodyWatch, ReaderState } from './body-watch.ts';
import type { Budget } from './budget.ts';
import { CALLS, type CallRules } from './call-rules.ts';
import { BEFORE_CALLS, type Ledger } from './ledger.ts';
import type { SessionLimit, SessionUse } from './session-limit.ts';

/** What all permits are reserved from. */
interface Shared {
  readonly ledger: Ledger;
  readonly bodies: BodyWatch;
  readonly perSession: SessionLimit;
}

/** The part of its share that a reader may use who leaves much unread, so that a few slow sockets keep nobody out. */
const FOR_BEHIND = 0.6;
/** A starved reader may use more than other bodies: the kernel still charges what the allocator has not given back. */
const FOR_STARVED = 29 / 32;
/** The share of the ledger beyond which no session check begins to wait: more than public playback may use. */
const WAITING_SHARE = 13 / 16;
/**
 * How long a call waits for memory, which the heads of other responses free within milliseconds, and a session check for a
 * place: after a restart every open tab sends one.
 */
const PATIENCE_MS = 2000;

export class Permit implements BodyMemory {
  readonly rules: CallRules;
  bodyBytes = 0;
  session: SessionUse | undefined;
  readonly #shared: Shared;
  readonly #pool: Budget;
  readonly #callBytes: number;
  #hasPlace = false;
  /** Reserved while the reader keeps up. */
  #baseBytes = 0;
  /** Reserved while it does not. */
  #behindBytes = 0;
  /** Reserved in addition during each read. */
  #perReadBytes = 0;
  /** How much of the reservation is for bytes that have not arrived. */
  #expectedBytes = 0;
  #borrowedBytes = 0;

  /**
   * Counts the call for its session and takes its memory, even when there is none left.
   *
   * @param session undefined for public playback
   * @param headBytes what the request's head takes beside {@link CALL_BYTES}
   */
  constructor(
    shared: Shared,
    pool: Budget,
    rules: CallRules,
    session: SessionUse | undefined,
    headBytes = 0,
  ) {
    this.rules = rules;
    this.#shared = shared;
    this.#pool = pool;
    this.#callBytes = CALL_BYTES + headBytes;
    shared.ledger.take(this.#callBytes);
    this.session = session;
    this.#count(1);
  }

  get bodies(): BodyWatch {
    return this.#shared.bodies;
  }

  /**
   * Whether its client may be cut off to make room. A change may not be, because its response would be lost; a generation
   * goes on without its client.
   */
  get isExpendable(): boolean {
    return this.rules !== CALLS.change;
  }

  /** Takes a place in its pool. A session check waits for one; other calls may last for minutes. */
  takePlace(): Permit | Promise<Permit> {
    return this.#tryPlace() ? this : this.#waitForPlace();
  }

  #tryPlace(): boolean {
    this.#hasPlace = this.#pool.tryTake(1, this.rules.poolShare);
    return this.#hasPlace;
  }

  async #waitForPlace(): Promise<Permit> {
    const mayWait = this.rules.isVital && this.#shared.ledger.fits(0, WAITING_SHARE);
    const succeeded = await this.#pool.succeeds(() => this.#tryPlace(), mayWait ? PATIENCE_MS : 0);
    if (!succeeded) throw this.#pool.refusal();
    return this;
  }

  /**
   * Reserves these bytes for the body of the response, instead of those before.
   *
   * @param readBytes what each read of it needs in addition
   * @throws GatewayError 503 when there is no memory, 429 when the session has its share of it
   */
  reserveBody(bytes: number, readBytes = 0): void {
    this.#baseBytes = bytes;
    this.#behindBytes = bytes;
    this.#perReadBytes = readBytes;
    this.#expect(0);
    // Nothing is refused for what was reserved before its head.
    if (bytes > this.bodyBytes && !this.#makeRoomFor(bytes)) throw this.#refusal(bytes);
    this.#set(bytes);
    if (readBytes === 0) this.#expect(bytes);
  }

  /**
   * Reserves what a generation needs while its reader keeps up. It is paid for, so it may use the ledger nearly to its end.
   * A long track of known length already exists and arrives at once, so it reserves what a slow reader needs.
   *
   * @param length of the body, in bytes; infinite when it is not known
   * @returns whether there was memory
   */
  tryReservePaid(length: number): boolean {
    const { ledger } = this.#shared;
    this.#baseBytes = STREAM_BASE_BYTES;
    this.#behindBytes = Math.max(STREAM_BASE_BYTES, Math.min(STREAMED_BODY_BYTES, 2 * length));
    if (Number.isFinite(length) && this.#behindBytes > STREAM_BASE_BYTES) {
      if (this.fallBehind()) {
        this.#expect(this.bodyBytes);
        return true;
      }
      // When only the session's share is used up, the base is enough.
      if (!ledger.fitsCharged(this.#behindBytes, this.rules.share)) return false;
    }
    const fits = ledger.fits(STREAM_BASE_BYTES, BEFORE_CALLS);
    if (fits) this.#set(STREAM_BASE_BYTES);
    return fits;
  }

  /**
   * Reserves what can arrive before the head of the response is known. It waits a moment for memory.
   *
   * @returns a promise only when it has to wait
   * @throws GatewayError as {@link reserveBody} does
   */
  reserveReadAhead(): Promise<void> | undefined {
    const { readAheadBytes, share } = this.rules;
    if (readAheadBytes === 0) return undefined;
    if (this.#makeRoomFor(readAheadBytes)) {
      this.#expect(readAheadBytes);
      return undefined;
    }
    // A session that has its share is refused at once, and must not delay those who wait behind it.
    const attempt = () => !this.#isWithinSession(readAheadBytes) || this.#tryTake(readAheadBytes);
    return this.#shared.ledger.succeeds(attempt, PATIENCE_MS, share).then(() => {
      if (this.bodyBytes < readAheadBytes) throw this.#refusal(readAheadBytes);
      this.#expect(readAheadBytes);
    });
  }

  /**
   * Reserves what the next read of the body takes.
   *
   * @param isFast whether the body is faster than music: without slices, only such a body has to wait for memory
   * @returns false when there is no memory now
   */
  tryReserveRead(reader: ReaderState, isFast: boolean): boolean {
    const { ledger } = this.#shared;
    const more = this.#perReadBytes;
    const isSliced = more > 0;
    if (!isSliced && !(isFast && this.isExpendable)) return true;
    if (isSliced && reader === 'behind' && !ledger.fitsCharged(more, FOR_BEHIND * this.rules.share))
      return false;
    const bytes = this.bodyBytes + more;
    if (reader === 'starved' && ledger.fitsCharged(more, FOR_STARVED)) this.#set(bytes);
    else if (!this.#makeRoomFor(bytes)) return false;
    if (isSliced) this.#expect(more);
    return true;
  }

  /** The kernel charges now what has been expected of a body that is not read in slices. */
  onArrived(): void {
    if (this.#perReadBytes === 0) this.#expect(0);
  }

  /** Gives back what {@link tryReserveRead} has reserved. */
  onRead(): void {
    if (this.#expectedBytes === 0) return;
    this.#expect(0);
    this.#set(this.bodyBytes - this.#perReadBytes);
  }

  /** Reserves what the body needs while its reader does not keep up. @returns whether there was memory */
  fallBehind(): boolean {
    if (this.bodyBytes >= this.#behindBytes) return true;
    if (!this.#makeRoomFor(this.#behindBytes)) return false;
    this.#borrow(this.#behindBytes - this.#baseBytes);
    return true;
  }

  /** Gives back what {@link fallBehind} has reserved. */
  catchUp(): void {
    if (this.#borrowedBytes === 0) return;
    this.#borrow(0);
    this.#set(this.#baseBytes);
  }

  /** Gives back the memory of a body that no client gets any more. */
  giveBodyUp(): void {
    const before = this.bodyBytes;
    this.#borrow(0);
    this.#expect(0);
    this.#set(this.rules.isGeneration ? Math.min(before, this.#baseBytes) : 0);
    this.#shared.ledger.expectFree(before - this.bodyBytes);
  }

  /** Counts the request for the access token with which its session was renewed. @throws GatewayError 429 */
  renewed(accessToken: string): void {
    // First, because the upstream may issue the same token again, and the call would be refused because of itself.
    this.#count(-1);
    const { session } = this;
    try {
      this.session = session && this.#shared.perSession.useOf(accessToken, this.rules.isGeneration);
    } finally {
      this.#count(1);
    }
  }

  /** Counts the call for its session, or takes it out of the count. */
  #count(by: 1 | -1): void {
    const { session } = this;
    if (!session) return;
    session.calls += by;
    if (this.rules.isGeneration) session.generations += by;
    session.bytes += by * this.bodyBytes;
    this.#shared.perSession.note(session);
  }

  /** Cuts off readers that stand still when there is no room: those of this session when it has its share. */
  #makeRoomFor(bytes: number): boolean {
    if (this.#tryTake(bytes)) return true;
    const onlyOf = this.#isWithinSession(bytes - this.bodyBytes) ? undefined : this.session;
    return this.bodies.makeRoom(() => this.#tryTake(bytes), this, onlyOf);
  }

  #tryTake(bytes: number): boolean {
    const { ledger } = this.#shared;
    const { isVital, share } = this.rules;
    const more = bytes - this.bodyBytes;
    // Without more bytes, this asks whether the others leave the body room to go on.
    const fits = more < 0 || (isVital ? ledger.fits(more, share) : ledger.fitsCharged(more, share));
    if (!fits || (more > 0 && !this.#isWithinSession(more))) return false;
    this.#set(bytes);
    return true;
  }

  #set(bytes: number): void {
    const more = bytes - this.bodyBytes;
    this.bodyBytes = bytes;
    if (this.session) this.session.bytes += more;
    if (more > 0) this.#shared.ledger.take(more);
    if (more < 0) this.#shared.ledger.release(-more);
  }

  #borrow(bytes: number): void {
    this.#shared.ledger.borrowed += bytes - this.#borrowedBytes;
    this.#borrowedBytes = bytes;
  }

  #expect(bytes: number): void {
    this.#shared.ledger.expected += bytes - this.#expectedBytes;
    this.#expectedBytes = bytes;
  }

  #isWithinSession(more: number): boolean {
    const most = this.#shared.ledger.limit * this.rules.sessionShare;
    return (this.session?.bytes ?? 0) + more <= most;
  }

  #refusal(bytes: number): GatewayError {
    const { ledger, perSession } = this.#shared;
    return this.#isWithinSession(bytes - this.bodyBytes) ? ledger.refusal() : perSession.refusal();
  }

  release(): void {
    this.#count(-1);
    this.#expect(0);
    this.#borrow(0);
    if (this.#hasPlace) this.#pool.release(1);
    this.#shared.ledger.release(this.#callBytes + this.bodyBytes);
    // A body that is given up after this gives nothing back again.
    this.bodyBytes = 0;
  }
}
