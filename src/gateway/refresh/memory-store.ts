/** The replay store of a single instance, in the memory of its process. */

import type { Ledger } from '../admission/ledger.ts';
import { FACT_BYTES, FACT_BYTES_PER_CHARACTER } from '../admission/prices.ts';
import { BoundedMap, type OnEvicted } from './bounded-map.ts';
import { systemClock } from './clock.ts';
import { type Fact, isByStrangers, isSame, type Kept, type ReplayStore, type Swapped } from './store.ts';

/** Bounds all facts to a share of the ledger, because the rest is for calls and bodies. */
const SHARE = 1 / 12;
/** Bounds them in a large ledger too, because Redis keeps as much for each instance. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Bounds what strangers cause by made-up tokens to a share of that, because a flood of it must evict nothing else. */
const STRANGERS = 1 / 8;

/** A detail up to this length is part of `FACT_BYTES`. */
const SHORT_DETAIL = 64;

/** What strangers can cause has a map of its own, which gives way first when the ledger is full. */
export class MemoryReplayStore implements ReplayStore {
  readonly #now: () => number;
  readonly #known: BoundedMap<Kept>;
  readonly #strangers: BoundedMap<Kept>;

  constructor(ledger: Ledger, now = systemClock.now, onEvicted: OnEvicted<Fact> = () => {}) {
    this.#now = now;
    const bytes = Math.min(MAX_BYTES, ledger.limit * SHARE);
    this.#known = new BoundedMap<Kept>(bytes * (1 - STRANGERS), ledger, now, onEvicted);
    this.#strangers = new BoundedMap<Kept>(bytes * STRANGERS, ledger, now, onEvicted);
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

  keep(): void {
    // What is found here is kept here.
  }

  read(key: string): Kept | undefined {
    return this.#known.get(key) ?? this.#strangers.get(key);
  }

  /** Replaces whatever is there. */
  write(key: string, fact: Fact | undefined, lifetimeMs: number, writtenAt = this.#now()): void {
    this.#known.delete(key);
    this.#strangers.delete(key);
    if (!fact) return;
    const { kind, detail } = fact;
    const bytes = FACT_BYTES + (detail.length > SHORT_DETAIL ? FACT_BYTES_PER_CHARACTER * detail.length : 0);
    const map = isByStrangers(fact) ? this.#strangers : this.#known;
    map.set(key, { kind, detail, writtenAt }, bytes, lifetimeMs);
    for (const each of [this.#strangers, this.#known]) each.evict();
  }
}
