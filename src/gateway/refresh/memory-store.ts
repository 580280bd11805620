/** The replay store of a single instance, in the memory of its process. */

import {
  CLAIMED,
  ISSUED,
  isEnded,
  RENEWED,
  type ReplayStore,
  type SignOutLifetimes,
  timeIn,
} from './store.ts';

interface Entry {
  readonly record: string;
  readonly expiresAt: number;
}

/** Entries in the order of writing. Beyond the limit, a part evicts its oldest entries. */
class Part {
  readonly entries = new Map<string, Entry>();
  readonly #limit: number;
  /** The iterator is kept, because a new one would skip all removed entries one by one, which is slow. */
  #order = this.entries.keys();
  #oldest: string | undefined;

  constructor(limit: number) {
    this.#limit = limit;
  }

  delete(key: string): void {
    this.entries.delete(key);
    if (key === this.#oldest) this.#oldest = undefined;
  }

  set(key: string, entry: Entry, now: number): void {
    // Deleting first moves the key to the end, which keeps the order of writing, and nearly that of expiry.
    this.delete(key);
    if (entry.expiresAt > now) this.entries.set(key, entry);
    for (;;) {
      const oldest = this.#oldest === undefined ? undefined : this.entries.get(this.#oldest);
      if (oldest && oldest.expiresAt > now && this.entries.size <= this.#limit) return;
      if (this.#oldest !== undefined) this.entries.delete(this.#oldest);
      this.#oldest = this.#order.next().value;
      if (this.#oldest === undefined) break;
    }
    // The iterator ends only when no entry is left.
    this.#order = this.entries.keys();
  }
}

/** About half a kilobyte each: 25 MB. */
const MAX_RENEWALS = 50_000;
/** About 200 bytes each: 10 MB. */
const MAX_ISSUED = 50_000;
/** About 200 bytes each, 2 MB, and as much in Redis. */
export const MAX_UNKNOWN_SIGN_OUTS = 10_000;
/** Claims, refusals and failures: about 200 bytes each, 2 MB. The process knows its own claims without them. */
const MAX_PASSING = 10_000;

/** Keeps what anonymous clients can cause in separate parts, so that it evicts nothing else. */
export class MemoryReplayStore implements ReplayStore {
  readonly lingerMs: number = 0;
  /** Renewals, and sign-outs of tokens that have worked. */
  readonly #worked = new Part(MAX_RENEWALS);
  readonly #unknownSignOuts = new Part(MAX_UNKNOWN_SIGN_OUTS);
  readonly #passing = new Part(MAX_PASSING);
  readonly #parts = [this.#worked, this.#unknownSignOuts, this.#passing];
  readonly #issued = new Part(MAX_ISSUED);
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  async add(key: string, record: string, lifetimeMs: number): Promise<string | undefined> {
    const existing = this.#read(key)?.record;
    if (existing === undefined) this.#write(key, record, lifetimeMs);
    return existing;
  }

  async replace(key: string, expected: string, record: string, lifetimeMs: number): Promise<boolean> {
    if (this.#read(key)?.record !== expected) return false;
    this.#write(key, record, lifetimeMs);
    return true;
  }

  async end(
    key: string,
    ended: string,
    lifetimes: SignOutLifetimes,
    hasWorked = false,
  ): Promise<string | undefined> {
    const existing = this.#read(key)?.record;
    const record = isEnded(existing) ? existing : ended;
    if (hasWorked || this.hasWorked(key)) {
      this.#write(key, record, lifetimes.workedMs, this.#worked);
    } else if (record !== existing) {
      const lifetimeMs = existing?.startsWith(CLAIMED) ? lifetimes.claimedMs : lifetimes.unknownMs;
      this.#write(key, record, lifetimeMs, this.#unknownSignOuts);
    }
    return existing;
  }

  async markIssued(key: string, lifetimeMs: number): Promise<void> {
    const record = this.#live(this.#issued.entries.get(key))?.record ?? ISSUED;
    const now = this.#now();
    this.#issued.set(key, { record, expiresAt: now + lifetimeMs }, now);
  }

  async markPresented(key: string, at: number): Promise<void> {
    const issued = this.#live(this.#issued.entries.get(key));
    if (issued?.record !== ISSUED) return;
    this.#issued.set(key, { record: ISSUED + at, expiresAt: issued.expiresAt }, this.#now());
  }

  async presentedAt(key: string): Promise<number | undefined> {
    return timeIn(this.#live(this.#issued.entries.get(key))?.record.slice(ISSUED.length));
  }

  async get(key: string): Promise<string | undefined> {
    return this.#read(key)?.record;
  }

  /** Whether this store knows that a refresh has spent or issued the token. */
  hasWorked(key: string): boolean {
    return (
      this.#live(this.#worked.entries.get(key)) !== undefined ||
      this.#live(this.#issued.entries.get(key)) !== undefined
    );
  }

  remainingMs(key: string): number {
    return Math.max(1, (this.#read(key)?.expiresAt ?? 0) - this.#now());
  }

  /** Yields key, record and remaining lifetime; a mark begins with ISSUED. Sign-outs that may be made up come last. */
  *entries(): Generator<readonly [string, string, number]> {
    for (const part of [this.#worked, this.#issued, this.#passing, this.#unknownSignOuts]) {
      for (const [key, entry] of part.entries) {
        if (this.#live(entry)) yield [key, entry.record, entry.expiresAt - this.#now()];
      }
    }
  }

  #read(key: string): Entry | undefined {
    for (const part of this.#parts) {
      const entry = this.#live(part.entries.get(key));
      if (entry) return entry;
    }
    return undefined;
  }

  #live(entry: Entry | undefined): Entry | undefined {
    return entry && entry.expiresAt > this.#now() ? entry : undefined;
  }

  #write(
    key: string,
    record: string,
    lifetimeMs: number,
    part = record.startsWith(RENEWED) ? this.#worked : this.#passing,
  ): void {
    for (const other of this.#parts) other.delete(key);
    const now = this.#now();
    part.set(key, { record, expiresAt: now + lifetimeMs }, now);
  }
}
