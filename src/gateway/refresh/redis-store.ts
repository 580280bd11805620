/** The replay store that instances share: Redis, with this process's own memory while Redis does not respond. */

import type { Ledger } from '../admission/ledger.ts';
import { MemoryReplayStore } from './memory-store.ts';
import { type Aged, get, swap } from './redis-commands.ts';
import type { RedisConnection } from './redis-connection.ts';
import {
  type Fact,
  isByStrangers,
  isSame,
  type Kept,
  KINDS,
  type ReplayStore,
  type Swapped,
} from './store.ts';

/** What has no room in memory stays in Redis: the end of a real session, and a lease, which ends by itself. */
const STAYING = new Set<Fact['kind']>(['ended', 'leased']);

/**
 * What this process writes in Redis, it also writes in its memory. So it goes on alone while Redis is away, and knows its
 * own facts when Redis has lost them. Nothing is sent to a Redis that comes back.
 */
export class RedisReplayStore implements ReplayStore {
  readonly #memory: MemoryReplayStore;
  readonly #redis: RedisConnection;
  readonly #now: () => number;

  constructor(redis: RedisConnection, ledger: Ledger, now = Date.now) {
    this.#redis = redis;
    this.#now = now;
    // The rest leaves Redis as well, which bounds what one instance, or strangers by its means, keep there.
    this.#memory = new MemoryReplayStore(ledger, now, (key, fact) => {
      if (isByStrangers(fact) || !STAYING.has(fact.kind))
        void redis.ask((link) => swap(link, key, fact, undefined, 0, false));
    });
  }

  async get(key: string): Promise<Kept | undefined> {
    const theirs = this.#keptHere(await this.#redis.ask((link) => get(link, key)));
    const own = this.#memory.read(key);
    return own && outranks(own, theirs) ? own : theirs;
  }

  async swap(key: string, from: Fact | undefined, to: Fact | undefined, lifetimeMs = 0): Promise<Swapped> {
    const own = this.#memory.read(key);
    const isOwn = isSame(own, from);
    // `get` returns the own fact then, so it is also what is there for a write.
    if (own && !isOwn && outranks(own, from)) return { isWritten: false, before: own };
    const ask = (expected: Fact | undefined) =>
      this.#redis.ask(async (link, isRepeated) => {
        const swapped = await swap(link, key, expected, to, lifetimeMs, isOwn);
        // The first command may have been executed, although its reply was lost.
        return isRepeated && isSame(swapped.before, to) ? { isWritten: true } : swapped;
      });
    let swapped = await ask(from);
    if (swapped && !swapped.isWritten && own && isOwn && outranks(own, swapped.before))
      swapped = await ask(swapped.before);
    if (!swapped) return this.#memory.swap(key, from, to, lifetimeMs);
    // Meanwhile the session may have been signed out here, which counts whatever else has changed.
    const mayWrite = to?.kind === 'ended' || isSame(this.#memory.read(key), own);
    if (swapped.isWritten && mayWrite) this.#memory.write(key, to, lifetimeMs);
    return { isWritten: swapped.isWritten, before: this.#keptHere(swapped.before) };
  }

  /** A fact seems younger than it is by the time that the reply has taken, which is never to a user's disadvantage. */
  #keptHere(aged: Aged | undefined): Kept | undefined {
    return aged && { kind: aged.kind, detail: aged.detail, writtenAt: this.#now() - aged.ageMs };
  }
}

function outranks(one: Fact, other: Fact | undefined): boolean {
  return other === undefined || KINDS.indexOf(one.kind) > KINDS.indexOf(other.kind);
}
