/** The replay store that instances share: Redis, with this process's own memory while Redis does not respond. */

import type { Ledger } from '../admission/ledger.ts';
import { type Clock, systemClock } from './clock.ts';
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
/** What others need not hear of after an outage. */
const PASSING = new Set<Fact['kind']>(['leased', 'unreachable']);
/** How long what was learned without Redis waits for it. After longer outages, browsers have newer cookies. */
const MOST_AWAY_MS = 10_000;
const RETRY_MS = 250;
/** Each has less than a kilobyte, because its fact is in memory anyway. */
const MOST_UNSENT = 1000;
/** What strangers cause is not added to more than this, because a flood of it must keep nothing else out. */
const MOST_BY_STRANGERS = MOST_UNSENT / 8;

/** A fact that Redis does not have yet. */
interface Unsent {
  /** What Redis had when it was last heard of. */
  readonly from: Fact | undefined;
  readonly lifetimeMs: number;
}

/**
 * What this process writes in Redis, it also writes in its memory. So it goes on alone while Redis is away, and knows its
 * own facts when Redis has lost them. After a short outage, Redis gets what was learned meanwhile.
 */
export class RedisReplayStore implements ReplayStore {
  readonly #memory: MemoryReplayStore;
  readonly #redis: RedisConnection;
  readonly #clock: Clock;
  readonly #unsent = new Map<string, Unsent>();
  #isSending = false;

  constructor(redis: RedisConnection, ledger: Ledger, clock = systemClock) {
    this.#redis = redis;
    this.#clock = clock;
    // The rest leaves Redis as well, which bounds what one instance, or strangers by its means, keep there.
    this.#memory = new MemoryReplayStore(ledger, clock.now, (key, fact) => {
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
    if (!swapped) {
      const alone = await this.#memory.swap(key, from, to, lifetimeMs);
      if (alone.isWritten && to && !PASSING.has(to.kind)) this.#sendLater(key, to, { from, lifetimeMs });
      return { ...alone, isAlone: true };
    }
    // Meanwhile the session may have been signed out here, which counts whatever else has changed.
    const mayWrite = to?.kind === 'ended' || isSame(this.#memory.read(key), own);
    if (swapped.isWritten && mayWrite) this.#memory.write(key, to, lifetimeMs);
    return { isWritten: swapped.isWritten, before: this.#keptHere(swapped.before) };
  }

  keep(key: string, found: Kept, lifetimeMs: number): void {
    const own = this.#memory.read(key);
    if (!own || outranks(found, own)) this.#memory.write(key, found, lifetimeMs, found.writtenAt);
  }

  #sendLater(key: string, fact: Fact, unsent: Unsent): void {
    if (this.#unsent.size >= (isByStrangers(fact) ? MOST_BY_STRANGERS : MOST_UNSENT)) return;
    this.#unsent.set(key, { ...unsent, from: this.#unsent.get(key)?.from ?? unsent.from });
    void this.#sendWhenBack();
  }

  async #sendWhenBack(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    while (this.#unsent.size > 0) {
      await this.#clock.sleep(RETRY_MS);
      for (const [key, unsent] of this.#unsent) {
        if (!(await this.#send(key, unsent))) break;
        if (this.#unsent.get(key) === unsent) this.#unsent.delete(key);
      }
    }
    this.#isSending = false;
  }

  /** Writes the fact where Redis has nothing that counts more. Returns false when Redis is still away. */
  async #send(key: string, { from, lifetimeMs }: Unsent): Promise<boolean> {
    const own = this.#memory.read(key);
    if (!own || PASSING.has(own.kind) || this.#clock.now() - own.writtenAt > MOST_AWAY_MS) return true;
    for (let expected = from; ; ) {
      const swapped = await this.#redis.ask((link) => swap(link, key, expected, own, lifetimeMs, true));
      if (!swapped) return false;
      if (swapped.isWritten || !outranks(own, swapped.before)) return true;
      expected = swapped.before;
    }
  }

  /** A fact seems younger than it is by the time that the reply has taken, which is never to a user's disadvantage. */
  #keptHere(aged: Aged | undefined): Kept | undefined {
    return aged && { kind: aged.kind, detail: aged.detail, writtenAt: this.#clock.now() - aged.ageMs };
  }
}

function outranks(one: Fact, other: Fact | undefined): boolean {
  return other === undefined || KINDS.indexOf(one.kind) > KINDS.indexOf(other.kind);
}
