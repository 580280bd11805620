/** The replay store of a single instance, in the memory of its process. */

import type { Budget } from '../http/admission/budget.ts';
import { BoundedMap, type OnEvicted } from './bounded-map.ts';
import { type Fact, isSame, type Kept, type ReplayStore, type Swapped } from './store.ts';

/** How much of the ledger all facts may use, and how much at most, because Redis keeps as much for each instance. */
const SHARE = 1 / 12;
const MAX_BYTES = 64 * 1024 * 1024;
/** How much of that is for what strangers can make the gateway keep, by made-up tokens. */
const STRANGERS = 1 / 8;
const BY_STRANGERS: readonly Fact['kind'][] = ['unreachable', 'rejected'];

/** What strangers can cause has a map of its own, so that it evicts nothing else. */
export class MemoryReplayStore implements ReplayStore {
  readonly #known: BoundedMap;
  readonly #strangers: BoundedMap;

  constructor(ledger: Budget, now: () => number = Date.now, onEvicted: OnEvicted = () => {}) {
    const bytes = Math.min(MAX_BYTES, ledger.limit * SHARE);
    this.#known = new BoundedMap(bytes * (1 - STRANGERS), ledger, now, onEvicted);
    this.#strangers = new BoundedMap(bytes * STRANGERS, ledger, now, onEvicted);
  }

  async get(key: string): Promise<Kept | undefined> {
    return this.read(key);
  }

  async swap(key: string, from: Fact | undefined, to: Fact | undefined, lifetimeMs = 0): Promise<Swapped> {
    const before = this.read(key);
    if (!isSame(before, from)) return { isWritten: false, before };
    this.write(key, to, lifetimeMs);
    return { isWritten: true };
  }

  async keepHere(key: string, fact: Fact, lifetimeMs: number): Promise<undefined> {
    this.#known.delete(key);
    this.#strangers.set(key, fact, lifetimeMs);
  }

  read(key: string): Kept | undefined {
    return this.#known.get(key) ?? this.#strangers.get(key);
  }

  /** Replaces whatever is there. */
  write(key: string, fact: Fact | undefined, lifetimeMs: number): void {
    this.#known.delete(key);
    this.#strangers.delete(key);
    const map = fact && BY_STRANGERS.includes(fact.kind) ? this.#strangers : this.#known;
    if (fact) map.set(key, fact, lifetimeMs);
  }
}
