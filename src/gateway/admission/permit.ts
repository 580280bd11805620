/** What one request has reserved. All of it is released together. */

import type { GatewayError } from '../http/errors.ts';
import { CALL_BYTES, STREAM_BASE_BYTES, STREAMED_BODY_BYTES } from '../settings/memory.ts';
import type { BodyMemory, BodyWatch } from './body-watch.ts';
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

/** How long a session check waits for a place: after a restart every open tab sends one. */
const PLACE_PATIENCE_MS = 2000;
/** How much of its share a body may use whose reader leaves much of it in the kernel. */
const UNDRAINED = 0.6;
/** How much of the ledger may be in use for a body whose reader has taken everything and waits for more. */
const FOR_STARVED = 7 / 8;
/** How much of the ledger may be in use when it begins to wait. */
const WAITING_SHARE = 2 / 3;
/** How long a call waits for memory: the heads of other responses free most of it within milliseconds. */
const PATIENCE_MS = 1000;

export class Permit implements BodyMemory {
  readonly rules: CallRules;
  readonly isGeneration: boolean;
  bodyBytes = 0;
  session: SessionUse | undefined;
  readonly #shared: Shared;
  readonly #pool: Budget;
  #places = 0;
  /** What the body needs while its reader keeps up, and while it does not; and what each read needs in addition. */
  #baseBytes = 0;
  #behindBytes = 0;
  #readBytes = 0;
  /** How much of the reservation is for bytes that have not arrived. */
  #expectedBytes = 0;
  #borrowedBytes = 0;

  /**
   * Counts the call for its session and takes its memory, even when there is none left.
   *
   * @param token identifies the session; undefined for public playback
   */
  constructor(shared: Shared, pool: Budget, rules: CallRules, token: string | undefined) {
    this.rules = rules;
    this.isGeneration = rules.isGeneration;
    this.#shared = shared;
    this.#pool = pool;
    shared.ledger.take(CALL_BYTES);
    if (token !== undefined) this.#join(shared.perSession.useOf(token));
  }

  get bodies(): BodyWatch {
    return this.#shared.bodies;
  }

  /** What has changed something at the upstream is not given up. A generation goes on without its client. */
  get isExpendable(): boolean {
    return this.rules !== CALLS.change;
  }

  /** Takes a place in its pool. A session check waits for one; other calls may last for minutes. */
  takePlace(): Permit | Promise<Permit> {
    const { poolShare, isVital } = this.rules;
    const pool = this.#pool;
    if (pool.tryTake(1, poolShare)) {
      this.#places = 1;
      return this;
    }
    const mayWait = isVital && this.#shared.ledger.fits(0, WAITING_SHARE);
    const attempt = () => pool.tryTake(1, poolShare);
    return pool.succeeds(attempt, mayWait ? PLACE_PATIENCE_MS : 0).then((succeeded) => {
      this.#places = succeeded ? 1 : 0;
      if (succeeded) return this;
      this.release();
      throw pool.refusal();
    });
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
    this.#readBytes = readBytes;
    this.#expect(0);
    // Nothing is refused for what its head has reserved.
    if (bytes > this.bodyBytes && !this.#makeRoomFor(bytes)) throw this.#refusal(bytes);
    this.#set(bytes);
    if (readBytes === 0) this.#expect(bytes);
  }

  /**
   * Reserves what a generation needs while its reader keeps up. It is paid for, so it may use the ledger nearly to its end.
   * One of known length has been made already and arrives at once, so it needs what it needs while its reader does not.
   *
   * @param length of the body, in bytes; infinite when it is not known
   * @returns whether there was memory
   */
  tryReservePaid(length: number): boolean {
    const { ledger } = this.#shared;
    this.#baseBytes = STREAM_BASE_BYTES;
    this.#behindBytes = Math.max(STREAM_BASE_BYTES, Math.min(STREAMED_BODY_BYTES, 2 * length));
    if (Number.isFinite(length)) {
      if (this.fallBehind()) return this.#expect(this.bodyBytes);
      if (!ledger.hasRoom(this.#behindBytes, this.rules.share)) return false;
    }
    const fits = ledger.fits(STREAM_BASE_BYTES, BEFORE_CALLS);
    if (fits) this.#set(STREAM_BASE_BYTES);
    return fits;
  }

  /**
   * Reserves what can arrive before the head of the response is known. It waits a moment for memory.
   *
   * @returns a promise only when it has to wait, because every call would pay for it
   * @throws GatewayError as {@link reserveBody} does
   */
  reserveHead(): Promise<void> | undefined {
    const { headBytes, share } = this.rules;
    if (headBytes === 0) return undefined;
    if (this.#makeRoomFor(headBytes) && this.#expect(headBytes)) return undefined;
    const attempt = () => this.#tryTake(headBytes) && this.#expect(headBytes);
    return this.#shared.ledger.succeeds(attempt, PATIENCE_MS, share).then((succeeded) => {
      if (!succeeded) throw this.#refusal(headBytes);
    });
  }

  /**
   * Reserves what the next read of the body takes.
   *
   * @param isFast whether the body takes memory faster than music needs it, and so has to stop when there is little left
   * @param isDrained whether its reader has taken nearly all that it was sent: only for such a body the last part of the
   *   share is used, so that the sockets of a few readers do not keep others out
   * @param isStarved whether it has waited for long although it is drained: then it may use more than its share, because
   *   the kernel also charges for what the allocator has not given back
   * @returns false when there is no memory now
   */
  mayRead(isFast: boolean, isDrained: boolean, isStarved: boolean): boolean {
    const { ledger } = this.#shared;
    const { share } = this.rules;
    const bytes = this.bodyBytes + this.#readBytes;
    if (this.#readBytes === 0 && !(isFast && this.isExpendable)) return true;
    if (isStarved && ledger.hasRoom(this.#readBytes, FOR_STARVED)) this.#set(bytes);
    else if (this.#readBytes > 0 && !isDrained && !ledger.hasRoom(this.#readBytes, UNDRAINED * share))
      return false;
    else if (!this.#makeRoomFor(bytes)) return false;
    return this.#readBytes === 0 || this.#expect(this.#readBytes);
  }

  /** The kernel charges now what has been expected of a body that is not read in slices. */
  hasArrived(): void {
    if (this.#readBytes === 0) this.#expect(0);
  }

  /** Gives back what {@link mayRead} has reserved. */
  hasRead(): void {
    if (this.#expectedBytes === 0) return;
    this.#expect(0);
    this.#set(this.bodyBytes - this.#readBytes);
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
    this.#set(this.isGeneration ? Math.min(before, this.#baseBytes) : 0);
    this.#shared.ledger.expectFree(before - this.bodyBytes);
  }

  /** Counts the request for the access token with which its session was renewed. @throws GatewayError 429 */
  renewed(accessToken: string): void {
    const { perSession } = this.#shared;
    const { session } = this;
    if (!session || perSession.isOf(session, accessToken)) return;
    perSession.refuseIfFull(accessToken, this.isGeneration);
    this.#leave(session);
    this.#join(perSession.useOf(accessToken));
  }

  #join(session: SessionUse): void {
    session.calls++;
    if (this.isGeneration) session.generations++;
    session.bytes += this.bodyBytes;
    this.session = session;
  }

  #leave(session: SessionUse): void {
    session.calls--;
    if (this.isGeneration) session.generations--;
    session.bytes -= this.bodyBytes;
    this.#shared.perSession.forgetUnused(session);
  }

  /** Cuts off readers that stand still when there is no room: those of this session when it has its share. */
  #makeRoomFor(bytes: number): boolean {
    if (this.#tryTake(bytes)) return true;
    const onlyOf = this.#isWithinSession(bytes - this.bodyBytes) ? undefined : this.session;
    const isPublic = this.session === undefined;
    return this.bodies.makeRoom(() => this.#tryTake(bytes), { isPublic, memory: this, onlyOf });
  }

  #tryTake(bytes: number): boolean {
    const { ledger } = this.#shared;
    const { isVital, share } = this.rules;
    const more = bytes - this.bodyBytes;
    // Without more bytes, the question is whether others leave the body room to go on.
    const fits = more < 0 || (isVital ? ledger.fits(more, share) : ledger.hasRoom(more, share));
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

  #expect(bytes: number): true {
    this.#shared.ledger.expected += bytes - this.#expectedBytes;
    this.#expectedBytes = bytes;
    return true;
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
    if (this.session) this.#leave(this.session);
    this.#expect(0);
    this.#borrow(0);
    this.#pool.release(this.#places);
    this.#shared.ledger.release(CALL_BYTES + this.bodyBytes);
    // A slice that is still being fetched gives nothing back after this.
    this.bodyBytes = 0;
  }
}
