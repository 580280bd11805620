/** What is reserved for the response to one call: until its head arrives, and while its body is sent. */

import type { GatewayError } from '../http/errors.ts';
import { Account, type Books } from './account.ts';
import type { BodyMemory, BodyWatch } from './body-watch.ts';
import type { CallRules } from './calls.ts';
import type { Endpoint } from './endpoint-prices.ts';
import type { Rung } from './ladder.ts';
import { overloaded } from './pool.ts';
import { type BodyPrice, NO_PRICE, priceOfStream, UNREAD_BYTES } from './prices.ts';
import type { SessionUse } from './session-limit.ts';
import type { Attempt } from './waiting-line.ts';

/** What everything is reserved from. */
export interface Shared extends Books {
  readonly watch: BodyWatch;
}

/** How long a call waits for memory: as long as a person would. */
const CALL_PATIENCE_MS = 10_000;
/** How long a track that is made already waits for memory: most proxies wait as long by default. */
const TRACK_PATIENCE_MS = 60_000;

export class ResponseMemory extends Account implements BodyMemory {
  readonly watch: BodyWatch;
  readonly #rules: CallRules;
  /** Where the call is made, until it has shown what that costs. */
  #endpoint: Endpoint | undefined;
  /** What it is expected to have when the head arrives; 0 once that has happened. */
  #expectedBytes = 0;
  #price: BodyPrice = NO_PRICE;
  #isReading = false;

  constructor(shared: Shared, rules: CallRules, use: SessionUse | undefined) {
    super(shared, use);
    this.watch = shared.watch;
    this.#rules = rules;
  }

  get isExpendable(): boolean {
    return this.#rules.isExpendable;
  }

  /**
   * Reserves what the response usually has when its head arrives, in the line of its rung.
   *
   * @param signal that of the client
   * @returns a promise only when it has to wait
   * @throws GatewayError 503 when there is no memory in time, 429 when its session has its share
   */
  start(endpoint: Endpoint, signal: AbortSignal): Promise<void> | undefined {
    const { ledger, perSession } = this.books;
    const { rung } = this.#rules;
    if (ledger.nobodyWaits(rung) && this.#tryStart(endpoint) === 'served') return undefined;
    if (!this.isWithinShare(endpoint.price)) throw perSession.refusal();
    const attempt = () => this.#tryStart(endpoint);
    return this.#wait(rung, attempt, signal, () => endpoint.price);
  }

  #tryStart(endpoint: Endpoint): Attempt {
    const { ledger } = this.books;
    const { price } = endpoint;
    // While memory is scarce, one call finds out what an unknown endpoint costs.
    if (!endpoint.isKnown && endpoint.waiting > 0 && ledger.isScarce(price)) return 'later';
    const outcome = this.#tryGrowTo(price, this.#rules.rung);
    if (outcome !== 'served') return outcome;
    ledger.expected += price;
    this.#expectedBytes = price;
    endpoint.waiting++;
    this.#endpoint = endpoint;
    return outcome;
  }

  /**
   * Ends the wait for the head. Takes what has arrived with it, even when there is no memory left. A change, which is
   * never refused, takes no more then than it has: the rest is for session checks, and the kernel charges what arrives.
   *
   * @param length of the body, in bytes; infinite when it is not known
   */
  headArrived(length: number, status: number): void {
    this.#stopWaiting();
    if (!Number.isFinite(length)) return;
    this.learn(length, status);
    const { bodyRung, isExpendable } = this.#rules;
    const arrivedBytes = Math.min(length, UNREAD_BYTES);
    const hasRoom = isExpendable || this.books.ledger.fits(bodyRung, arrivedBytes - this.bytes);
    this.set(hasRoom ? arrivedBytes : Math.min(arrivedBytes, this.bytes));
    this.books.ledger.serveSoon();
  }

  /** A short body has arrived with the head, within what was reserved for that. */
  arrivedWhole(bytes: number, status: number): void {
    this.#stopWaiting();
    this.learn(bytes, status);
    this.set(bytes);
  }

  /** @param bytes what the response had when its head arrived. Only the first call counts. */
  learn(bytes: number, status: number): void {
    this.#endpoint?.learn(bytes, status);
    this.#endpoint = undefined;
  }

  /**
   * Reserves what a body costs, instead of what its head has brought. A body of known length exists already, and
   * arrives faster than it is read.
   *
   * @param length infinite when it is not known
   * @param signal that of the client
   * @returns a promise only when it has to wait. The response to a change then goes on with what its head has, because
   *   it would be lost, and because heads could hold all that they wait for.
   * @throws GatewayError as {@link start} does
   */
  reserveBody(price: BodyPrice, length: number, signal: AbortSignal): Promise<void> | undefined {
    const { ledger } = this.books;
    const { bodyRung, isExpendable } = this.#rules;
    this.#price = price;
    const bytes = Number.isFinite(length) ? price.behind : price.keepsUp;
    const mayTry = ledger.nobodyWaits(bodyRung) || bytes <= this.bytes;
    if (mayTry && this.#tryGrowTo(bytes, bodyRung) === 'served') return undefined;
    const attempt = () => this.#tryGrowTo(bytes, bodyRung);
    // What has arrived with the head is in memory while it waits.
    if (isExpendable && !ledger.fits(bodyRung, 0)) throw this.#refusal(bytes);
    return this.#wait(bodyRung, attempt, signal, () => bytes, !isExpendable);
  }

  /**
   * Reserves the memory of a body that is read whole, perhaps while another call waits for its head.
   *
   * @throws GatewayError 503 when there is none
   */
  reserveWhole(bytes: number): void {
    const { ledger } = this.books;
    if (!ledger.fits(this.#rules.bodyRung, bytes - this.bytes)) throw ledger.refusal();
    this.set(Math.max(bytes, this.bytes));
  }

  /**
   * Reserves what a generation needs while its reader keeps up. It is paid for, so it may use the ledger nearly to its end.
   * A track whose length is known is made already and arrives at once, so it waits for what a slow reader needs.
   *
   * @param length of the body, in bytes; infinite when it is not known
   * @param signal ends the wait
   * @returns whether there was memory
   */
  admitTrack(length: number, signal: AbortSignal): boolean | Promise<boolean> {
    const { ledger } = this.books;
    const { rung, bodyRung } = this.#rules;
    const price = priceOfStream(length);
    this.#price = price;
    const isMade = Number.isFinite(length);
    const arrivedBytes = isMade ? Math.min(length, UNREAD_BYTES) : 0;
    const firstBytes = Math.max(arrivedBytes, price.keepsUp);
    const firstRung = firstBytes > price.keepsUp ? bodyRung : rung;
    if (!this.watch.makeRoom(() => ledger.fits(firstRung, firstBytes), this)) return false;
    this.set(firstBytes);
    if (!isMade || price.behind <= firstBytes) return true;
    const attempt = () => this.#tryGrowTo(price.behind, bodyRung);
    if (ledger.nobodyWaits(bodyRung) && attempt() === 'served') return true;
    return ledger.wait(bodyRung, attempt, TRACK_PATIENCE_MS, signal).then((isServed) => {
      // It is drained then, which takes little.
      if (!isServed) this.giveBodyUp();
      return isServed;
    });
  }

  /**
   * Reserves what the next read of the body takes, which is nothing without slices.
   *
   * @param isDrained whether the reader has taken nearly all of the slice before
   * @returns false when there is no memory now
   */
  tryReserveRead(isDrained: boolean): boolean {
    const { aRead } = this.#price;
    if (aRead === 0) return true;
    // A few slow sockets must keep nobody out, so a slice is not fetched before it is needed.
    if (!isDrained && this.books.ledger.isScarce()) return false;
    this.#isReading = this.#tryGrowTo(this.bytes + aRead, this.#rules.sliceRung) === 'served';
    return this.#isReading;
  }

  /** Gives back what {@link tryReserveRead} has reserved. */
  onRead(): void {
    if (!this.#isReading) return;
    this.#isReading = false;
    this.set(this.bytes - this.#price.aRead);
  }

  /** Whether all is reserved that the body needs while its reader does not keep up. Reserves it when there is memory. */
  fallBehind(): boolean {
    const { behind } = this.#price;
    return this.bytes >= behind || this.#tryGrowTo(behind, this.#rules.bodyRung) === 'served';
  }

  /** Gives back what a reader needs who does not keep up. */
  catchUp(): void {
    if (!this.#isReading && this.bytes > this.#price.keepsUp) this.set(this.#price.keepsUp);
  }

  /** Gives back the memory of a body that no client gets any more. What is paid for is still read. */
  giveBodyUp(): void {
    this.#isReading = false;
    this.set(this.#rules.isGeneration ? Math.min(this.bytes, this.#price.keepsUp) : 0);
  }

  /** Cuts off readers that stand still when there is no room: only those of this session when it has its share. */
  #tryGrowTo(bytes: number, rung: Rung): Attempt {
    if (this.#tryTake(bytes, rung)) return 'served';
    const onlyOf = this.isWithinShare(bytes) ? undefined : this.use;
    if (this.watch.makeRoom(() => this.#tryTake(bytes, rung), this, onlyOf)) return 'served';
    return onlyOf ? 'later' : 'full';
  }

  #tryTake(bytes: number, rung: Rung): boolean {
    const fits = bytes <= this.bytes || this.fits(rung, bytes);
    if (fits) this.set(bytes);
    return fits;
  }

  async #wait(
    rung: Rung,
    attempt: () => Attempt,
    signal: AbortSignal,
    bytes: () => number,
    goesOn = false,
  ): Promise<void> {
    const isServed = await this.books.ledger.wait(rung, attempt, CALL_PATIENCE_MS, signal);
    if (isServed || goesOn) return;
    // One whose client has left is not refused.
    throw signal.aborted ? overloaded(this.books.ledger.name) : this.#refusal(bytes());
  }

  #refusal(bytes: number): GatewayError {
    const { ledger, perSession } = this.books;
    return this.isWithinShare(bytes) ? ledger.refusal() : perSession.refusal();
  }

  #stopWaiting(): void {
    if (this.#expectedBytes === 0 || !this.#endpoint) return;
    this.#endpoint.waiting--;
    this.books.ledger.expected -= this.#expectedBytes;
    this.#expectedBytes = 0;
  }

  /** Gives all back. {@link giveBodyUp} and {@link onRead} do nothing after it. */
  release(): void {
    this.#stopWaiting();
    this.set(0);
    this.#isReading = false;
  }
}
