/** What is known of a refresh token for a while: that it is being refreshed, what came of it, that it was signed out. */

/** What a record says: who refreshes, the sealed pair that came of it, or one of the words below. */
export const CLAIMED = 'claimed:';
export const RENEWED = 'renewed:';
export const REJECTED = 'rejected';
export const UNREACHABLE = 'unreachable';
export const ENDED = 'ended';

/**
 * Records by key, each with a lifetime. The coordination of refreshes rests on `add` and `replace` being atomic.
 */
export interface ReplayStore {
  /** Keeps the record unless there is one; gives the one that is there, undefined when it was added. */
  add(key: string, record: string, lifetimeMs: number): Promise<string | undefined>;
  /** Keeps the record if `expected` is there; tells whether it was. */
  replace(key: string, expected: string, record: string, lifetimeMs: number): Promise<boolean>;
  /** Keeps the record whatever is there, and gives what was there. */
  put(key: string, record: string, lifetimeMs: number): Promise<string | undefined>;
  get(key: string): Promise<string | undefined>;
  /** How long an outcome must stay for those who wait for it in other processes. */
  readonly lingerMs: number;
}

interface Entry {
  readonly record: string;
  readonly expiresAt: number;
}

/** An entry takes about half a kilobyte; the oldest make room, and lose no more than their replay. */
const MOST_ENTRIES = 50_000;

/** The store of a gateway that runs alone. */
export class MemoryReplayStore implements ReplayStore {
  readonly lingerMs: number = 0;
  readonly #entries = new Map<string, Entry>();
  /** Sign-outs of tokens of which nothing was known: anybody can send as many as he likes. */
  readonly #unknown = new Map<string, Entry>();
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  async add(key: string, record: string, lifetimeMs: number): Promise<string | undefined> {
    const existing = this.#read(key);
    if (existing === undefined) this.#write(key, record, lifetimeMs);
    return existing;
  }

  async replace(key: string, expected: string, record: string, lifetimeMs: number): Promise<boolean> {
    if (this.#read(key) !== expected) return false;
    this.#write(key, record, lifetimeMs);
    return true;
  }

  async put(key: string, record: string, lifetimeMs: number): Promise<string | undefined> {
    const existing = this.#read(key);
    this.#write(key, record, lifetimeMs, existing === undefined ? this.#unknown : this.#entries);
    return existing;
  }

  async get(key: string): Promise<string | undefined> {
    return this.#read(key);
  }

  remainingMs(key: string): number {
    return Math.max(1, ((this.#entries.get(key) ?? this.#unknown.get(key))?.expiresAt ?? 0) - this.#now());
  }

  /** Key, record and what is left of its lifetime. */
  *entries(): Generator<readonly [string, string, number]> {
    const now = this.#now();
    for (const entries of [this.#entries, this.#unknown]) {
      for (const [key, { record, expiresAt }] of entries) {
        if (expiresAt > now) yield [key, record, expiresAt - now];
      }
    }
  }

  #read(key: string): string | undefined {
    const entry = this.#entries.get(key) ?? this.#unknown.get(key);
    return entry && entry.expiresAt > this.#now() ? entry.record : undefined;
  }

  #write(key: string, record: string, lifetimeMs: number, entries = this.#entries): void {
    // Written anew, so that the map's order is the order of writing, and nearly that of expiry.
    this.#entries.delete(key);
    this.#unknown.delete(key);
    if (lifetimeMs > 0) entries.set(key, { record, expiresAt: this.#now() + lifetimeMs });
    for (const [oldest, { expiresAt }] of entries) {
      if (expiresAt > this.#now() && entries.size <= MOST_ENTRIES) break;
      entries.delete(oldest);
    }
  }
}
