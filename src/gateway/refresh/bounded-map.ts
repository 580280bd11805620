/** A map of facts that expire, and whose memory is bounded and reserved in the ledger. */

import type { Budget } from '../http/admission/budget.ts';
import type { Fact, Kept } from './store.ts';

/** What an entry takes besides the text of a sealed pair: its key, its objects and its slot in the map. */
export const ENTRY_BYTES = 700;
/** A detail of this length is part of that. */
const SHORT_DETAIL = 64;

interface Entry {
  readonly kept: Kept;
  readonly expiresAt: number;
  readonly bytes: number;
}

/** Called with a fact for which there was no room any more, before it expired. */
export type OnEvicted = (key: string, fact: Fact) => void;

/** Beyond its limit, the map evicts the entries that were written first. */
export class BoundedMap {
  readonly #entries = new Map<string, Entry>();
  readonly #limitBytes: number;
  readonly #ledger: Budget;
  readonly #now: () => number;
  readonly #onEvicted: OnEvicted;
  #bytes = 0;
  /** The iterator is kept, because a new one would skip all removed entries one by one, which is slow. */
  #order = this.#entries.keys();
  #oldest: string | undefined;

  constructor(limitBytes: number, ledger: Budget, now: () => number, onEvicted: OnEvicted) {
    this.#limitBytes = limitBytes;
    this.#ledger = ledger;
    this.#now = now;
    this.#onEvicted = onEvicted;
  }

  get(key: string): Kept | undefined {
    const entry = this.#entries.get(key);
    return entry && entry.expiresAt > this.#now() ? entry.kept : undefined;
  }

  delete(key: string): void {
    const bytes = this.#entries.get(key)?.bytes ?? 0;
    this.#entries.delete(key);
    this.#bytes -= bytes;
    if (bytes) this.#ledger.release(bytes);
    if (key === this.#oldest) this.#oldest = undefined;
  }

  /** Writes at the end, which keeps the order of writing, and nearly that of expiry. */
  set(key: string, { kind, detail }: Fact, lifetimeMs: number): void {
    this.delete(key);
    const writtenAt = this.#now();
    const bytes = ENTRY_BYTES + (detail.length > SHORT_DETAIL ? detail.length : 0);
    this.#entries.set(key, { kept: { kind, detail, writtenAt }, expiresAt: writtenAt + lifetimeMs, bytes });
    this.#bytes += bytes;
    this.#ledger.take(bytes);
    this.#evict();
  }

  /** Deletes the oldest entries: those that have expired, and those beyond the limit. */
  #evict(): void {
    while (this.#entries.size > 0) {
      const oldest = this.#oldest ?? this.#order.next().value;
      this.#oldest = oldest;
      if (oldest === undefined) {
        this.#order = this.#entries.keys();
        continue;
      }
      const fact = this.get(oldest);
      if (fact && this.#bytes <= this.#limitBytes) return;
      if (fact) this.#onEvicted(oldest, fact);
      this.delete(oldest);
    }
  }
}
