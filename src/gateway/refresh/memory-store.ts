/** The replay store of a single instance, in the memory of its process. */

import type { Budget } from '../http/admission/budget.ts';
import type { Ended, TokenRecord } from './record.ts';
import type { ReplayStore, SignOutLifetimes } from './store.ts';

/** A refresh has issued the token; `presentedAt` is when a client first presented it, if one has. */
export interface IssuedMark {
  readonly kind: 'issued';
  readonly presentedAt: number | undefined;
}

interface Entry<Value> {
  readonly value: Value;
  readonly expiresAt: number;
}

/** Entries in the order of writing. Beyond its limit, a part evicts its oldest entries. */
class Part<Value extends TokenRecord | IssuedMark> {
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #limitBytes: number;
  readonly #ledger: Budget;
  readonly #now: () => number;
  readonly #onEvicted: OnEvicted;
  #bytes = 0;
  /** The iterator is kept, because a new one would skip all removed entries one by one, which is slow. */
  #order = this.#entries.keys();
  #oldest: string | undefined;

  /** @param onEvicted called for an entry that has not expired */
  constructor(limitBytes: number, ledger: Budget, now: () => number, onEvicted: OnEvicted) {
    this.#limitBytes = limitBytes;
    this.#ledger = ledger;
    this.#now = now;
    this.#onEvicted = onEvicted;
  }

  get(key: string): Entry<Value> | undefined {
    const entry = this.#entries.get(key);
    return entry && entry.expiresAt > this.#now() ? entry : undefined;
  }

  *live(): Generator<readonly [string, Value, number]> {
    for (const [key, { value, expiresAt }] of this.#entries) {
      const remainingMs = expiresAt - this.#now();
      if (remainingMs > 0) yield [key, value, remainingMs];
    }
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    this.#bytes -= bytesOf(entry.value);
    this.#ledger.release(bytesOf(entry.value));
    if (key === this.#oldest) this.#oldest = undefined;
  }

  set(key: string, value: Value, expiresAt: number): void {
    // Deleting first moves the key to the end, which keeps the order of writing, and nearly that of expiry.
    this.delete(key);
    if (expiresAt > this.#now()) {
      this.#entries.set(key, { value, expiresAt });
      this.#bytes += bytesOf(value);
      this.#ledger.take(bytesOf(value));
    }
    for (;;) {
      const oldest = this.#oldest === undefined ? undefined : this.get(this.#oldest);
      if (oldest && this.#bytes <= this.#limitBytes) return;
      if (oldest) this.#onEvicted(this.#oldest ?? '', oldest.value);
      if (this.#oldest !== undefined) this.delete(this.#oldest);
      this.#oldest = this.#order.next().value;
      if (this.#oldest === undefined) break;
    }
    // The iterator ends only when no entry is left.
    this.#order = this.#entries.keys();
  }
}

type OnEvicted = (key: string, value: TokenRecord | IssuedMark) => void;

/** How much of the ledger all records may use, and how much at most, because Redis keeps as much for each instance. */
const SHARE = 1 / 12;
const MAX_BYTES = 64 * 1024 * 1024;
/** Parts of that. */
const MARKS = 1 / 4;
const SIGN_OUTS = 1 / 16;
/** Claims, refusals and failures. The process knows its own claims without them. */
const PASSING = 1 / 16;

/** What an entry takes besides the text of a sealed pair: its key, its objects and its place in a map. */
export const ENTRY_BYTES = 700;

function bytesOf(value: TokenRecord | IssuedMark): number {
  return value.kind === 'renewed' ? ENTRY_BYTES + value.sealedPair.length : ENTRY_BYTES;
}

/** Records that anonymous clients can create have parts of their own, so that they evict no other records. */
export class MemoryReplayStore implements ReplayStore {
  readonly lingerMs: number = 0;
  readonly #now: () => number;
  /** Renewals, and sign-outs of tokens that have worked. */
  readonly #worked: Part<TokenRecord>;
  readonly #unknownSignOuts: Part<TokenRecord>;
  readonly #passing: Part<TokenRecord>;
  readonly #issued: Part<IssuedMark>;

  constructor(ledger: Budget, now: () => number = Date.now, onEvicted: OnEvicted = () => {}) {
    this.#now = now;
    const bytes = Math.min(MAX_BYTES, ledger.limit * SHARE);
    this.#worked = new Part(bytes * (1 - MARKS - SIGN_OUTS - PASSING), ledger, now, onEvicted);
    this.#unknownSignOuts = new Part(bytes * SIGN_OUTS, ledger, now, () => {});
    this.#passing = new Part(bytes * PASSING, ledger, now, () => {});
    this.#issued = new Part(bytes * MARKS, ledger, now, onEvicted);
  }

  async add(key: string, record: TokenRecord, lifetimeMs: number): Promise<TokenRecord | undefined> {
    const existing = this.#read(key)?.value;
    if (existing === undefined) this.#write(key, record, lifetimeMs);
    return existing;
  }

  async replace(
    key: string,
    expected: TokenRecord,
    record: TokenRecord,
    lifetimeMs: number,
  ): Promise<boolean> {
    if (!Bun.deepEquals(this.#read(key)?.value, expected)) return false;
    this.#write(key, record, lifetimeMs);
    return true;
  }

  async end(
    key: string,
    ended: Ended,
    lifetimes: SignOutLifetimes,
    hasWorked = false,
  ): Promise<TokenRecord | undefined> {
    const existing = this.#read(key)?.value;
    const record = existing?.kind === 'ended' ? existing : ended;
    if (hasWorked || this.hasWorked(key)) {
      this.#write(key, record, lifetimes.workedMs, this.#worked);
    } else if (record !== existing) {
      const lifetimeMs = existing?.kind === 'claimed' ? lifetimes.claimedMs : lifetimes.unknownMs;
      this.#write(key, record, lifetimeMs, this.#unknownSignOuts);
    }
    return existing;
  }

  async markIssued(key: string, lifetimeMs: number): Promise<void> {
    const presentedAt = this.#issued.get(key)?.value.presentedAt;
    this.#issued.set(key, { kind: 'issued', presentedAt }, this.#now() + lifetimeMs);
  }

  async markPresented(key: string, at: number): Promise<void> {
    const issued = this.#issued.get(key);
    if (!issued || issued.value.presentedAt !== undefined) return;
    this.#issued.set(key, { kind: 'issued', presentedAt: at }, issued.expiresAt);
  }

  async presentedAt(key: string): Promise<number | undefined> {
    return this.#issued.get(key)?.value.presentedAt;
  }

  async get(key: string): Promise<TokenRecord | undefined> {
    return this.#read(key)?.value;
  }

  /** There is no other instance to wait for. */
  stopWaiting(): void {}

  /** Whether this store knows that a refresh has spent or issued the token. */
  hasWorked(key: string): boolean {
    return this.#worked.get(key) !== undefined || this.#issued.get(key) !== undefined;
  }

  remainingMs(key: string): number {
    return Math.max(1, (this.#read(key)?.expiresAt ?? 0) - this.#now());
  }

  /** How long the token still counts as issued by a refresh, which may be replayed for so long. */
  issuedMs(key: string): number {
    return Math.max(0, (this.#issued.get(key)?.expiresAt ?? 0) - this.#now());
  }

  /** Yields key, record or mark, and remaining lifetime. Sign-outs that may be made up come last. */
  *entries(): Generator<readonly [string, TokenRecord | IssuedMark, number]> {
    yield* this.#worked.live();
    yield* this.#issued.live();
    yield* this.#passing.live();
    yield* this.#unknownSignOuts.live();
  }

  #read(key: string): Entry<TokenRecord> | undefined {
    return this.#worked.get(key) ?? this.#unknownSignOuts.get(key) ?? this.#passing.get(key);
  }

  #write(
    key: string,
    record: TokenRecord,
    lifetimeMs: number,
    part = record.kind === 'renewed' ? this.#worked : this.#passing,
  ): void {
    for (const other of [this.#worked, this.#unknownSignOuts, this.#passing]) other.delete(key);
    part.set(key, record, this.#now() + lifetimeMs);
  }
}
