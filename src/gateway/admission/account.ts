/** What is reserved for one thing: charged to the ledger, and to the session that has it. */

import type { Rung } from './ladder.ts';
import type { Ledger } from './ledger.ts';
import type { SessionLimit, SessionUse } from './session-limit.ts';

/** What everything is charged to. */
export interface Books {
  readonly ledger: Ledger;
  readonly perSession: SessionLimit;
}

/** All its figures are totals. Extended, not held: that saves each request an object. */
export class Account {
  bytes = 0;
  /** What its session has in flight; undefined for strangers. */
  use: SessionUse | undefined;
  protected readonly books: Books;

  constructor(books: Books, use: SessionUse | undefined) {
    this.books = books;
    this.use = use;
  }

  /** Reserves so much, even what does not fit. */
  set(bytes: number): void {
    const { ledger, perSession } = this.books;
    const more = bytes - this.bytes;
    this.bytes = bytes;
    perSession.charge(this.use, more);
    if (more > 0) ledger.take(more);
    if (more < 0) ledger.release(-more);
  }

  /** Whether so much fits on the rung. */
  fits(rung: Rung, bytes: number): boolean {
    return this.isWithinShare(bytes) && this.books.ledger.fits(rung, bytes - this.bytes);
  }

  /** Whether its session may have so much for it: while memory is scarce, one has no more than a share. */
  isWithinShare(bytes: number): boolean {
    const { ledger } = this.books;
    const more = bytes - this.bytes;
    return !this.use || ledger.isWithinShare(this.use.bytes + more) || !ledger.isScarce(more);
  }

  /** Charges it to another session. */
  moveTo(use: SessionUse): void {
    this.books.perSession.charge(this.use, -this.bytes);
    this.use = use;
    this.books.perSession.charge(use, this.bytes);
  }
}
