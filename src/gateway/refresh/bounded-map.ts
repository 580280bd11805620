/** A map whose entries expire, and whose memory is bounded and reserved in the ledger. */

import { LADDER } from '../admission/ladder.ts';
import type { Ledger } from '../admission/ledger.ts';

interface Entry<Value> {
  readonly value: Value;
  readonly writtenAt: number;
  readonly expiresAt: number;
  readonly bytes: number;
}

/** A full ledger evicts nothing younger: the calls of this moment need it. */
const YOUNG_MS = 10_000;

/** After so many writes there is a new iterator, which has at most as many removed entries to skip. */
const WRITES_OF_AN_ITERATOR = 1000;

/** Called with an entry that is evicted before it expires. */
export type OnEvicted<Value> = (key: string, value: Value) => void;

/** Beyond its limit, or when the ledger is full, the map evicts the entries that were written first. */
export class BoundedMap<Value> {
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #limitBytes: number;
  readonly #ledger: Ledger;
  readonly #now: () => number;
  readonly #onEvicted: OnEvicted<Value>;
  #bytes = 0;
  /**
   * Kept, because each new iterator skips removed entries one by one, which is slow. It never ends, because it is asked
   * only when the oldest was removed and others are left. But all that the map forgets stays in memory until its next step.
   */
  #order = this.#entries.keys();
  #oldest: string | undefined;
  #writes = 0;

  constructor(limitBytes: number, ledger: Ledger, now: () => number, onEvicted: OnEvicted<Value>) {
    this.#limitBytes = limitBytes;
    this.#ledger = ledger;
    this.#now = now;
    this.#onEvicted = onEvicted;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    return entry && entry.expiresAt > this.#now() ? entry.value : undefined;
  }

  delete(key: string): void {
    const bytes = this.#entries.get(key)?.bytes ?? 0;
    this.#entries.delete(key);
    this.#bytes -= bytes;
    if (bytes) this.#ledger.release(bytes);
    if (key === this.#oldest) this.#oldest = undefined;
  }

  /** Writes at the end, so that the first entry is the oldest, which is nearly the first to expire. */
  set(key: string, value: Value, bytes: number, lifetimeMs: number): void {
    this.delete(key);
    if (++this.#writes % WRITES_OF_AN_ITERATOR === 0) this.#order = this.#entries.keys();
    const writtenAt = this.#now();
    this.#entries.set(key, { value, writtenAt, expiresAt: writtenAt + lifetimeMs, bytes });
    this.#bytes += bytes;
    this.#ledger.take(bytes);
  }

  /** Deletes the oldest entries: those that have expired, and those beyond the limit. To be called after a `set`. */
  evict(): void {
    while (this.#entries.size > 0) {
      const oldest = this.#oldest ?? this.#order.next().value;
      if (oldest === undefined) return;
      this.#oldest = oldest;
      const value = this.get(oldest);
      const isYoung = this.#now() < (this.#entries.get(oldest)?.writtenAt ?? 0) + YOUNG_MS;
      const fits = this.#bytes <= this.#limitBytes && (isYoung || this.#ledger.fits(LADDER.order, 0));
      if (value !== undefined && fits) return;
      if (value !== undefined) this.#onEvicted(oldest, value);
      this.delete(oldest);
    }
  }
}
