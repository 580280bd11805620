/** The store that instances share: Redis, with this process's own memory while Redis is slow or down. */

import { MemoryReplayStore } from './memory-store.ts';
import type { Redis, RunScript } from './redis-connection.ts';
import { SignOutPlaces } from './sign-out-places.ts';
import { ISSUED, isEnded, RENEWED, type ReplayStore, type SignOutLifetimes, timeIn } from './store.ts';

/** How many records one round trip sends to Redis after an outage. */
const BATCH = 500;

/**
 * Every record is also kept in memory, so that this process knows its own outcomes when Redis goes down, and can send
 * them to Redis afterwards.
 */
export class RedisReplayStore implements ReplayStore {
  /** Longer than the interval at which other processes poll. */
  readonly lingerMs = 500;
  readonly #memory: MemoryReplayStore;
  readonly #places: SignOutPlaces;
  readonly #redis: Redis;

  constructor(redis: Redis, now = Date.now) {
    this.#redis = redis;
    this.#memory = new MemoryReplayStore(now);
    this.#places = new SignOutPlaces(now);
    redis.onReconnect((run) => this.#sendMissed(run));
  }

  async add(key: string, record: string, lifetimeMs: number): Promise<string | undefined> {
    const reply = await this.#redis.ask('add', key, [record, ceilMs(lifetimeMs)]);
    if (!reply) return this.#memory.add(key, record, lifetimeMs);
    const theirs = recordIn(reply.value);
    if (isEnded(theirs)) await this.#copyEnd(key, theirs, lifetimeMs);
    if (isEnded(theirs) || theirs?.startsWith(RENEWED)) return theirs;
    const own = await (theirs === undefined
      ? this.#memory.add(key, record, lifetimeMs)
      : this.#memory.get(key));
    // This process may know more than Redis, if Redis was down or has been emptied since.
    const isNewer = own !== undefined && (theirs === undefined || isEnded(own) || own.startsWith(RENEWED));
    if (!isNewer) return theirs;
    const remainingMs = this.#memory.remainingMs(key);
    // A sign-out that may be made up stays in Redis no longer than the record that it replaces there.
    const ownMs = this.#memory.hasWorked(key) ? remainingMs : Math.min(remainingMs, lifetimeMs);
    await this.#redis.ask('replace', key, [own, ceilMs(ownMs), theirs ?? record]);
    return own;
  }

  async replace(key: string, expected: string, record: string, lifetimeMs: number): Promise<boolean> {
    const own = await this.#memory.get(key);
    // Redis may have kept this sign-out with another time than this process has.
    const isSame = own === expected || (isEnded(own) && isEnded(expected));
    const replaced = isSame && (await this.#memory.replace(key, own, record, lifetimeMs));
    const reply = await this.#redis.ask('replace', key, [record, ceilMs(lifetimeMs), expected]);
    return reply ? reply.value === expected : replaced;
  }

  /**
   * When no place is free, a sign-out that may be made up stays only in this instance's memory. One that replaces a
   * claim is always written: the instance that refreshes must find it in Redis, and it adds no key.
   */
  async end(
    key: string,
    ended: string,
    lifetimes: SignOutLifetimes,
    hasWorked = false,
  ): Promise<string | undefined> {
    const own = await this.#memory.end(key, ended, lifetimes, hasWorked);
    if (!this.#redis.isUp) return own;
    const { workedMs, claimedMs, unknownMs } = lifetimes;
    const isKnown = this.#memory.hasWorked(key);
    const freePlace = isKnown ? undefined : this.#places.take(Math.max(claimedMs, unknownMs));
    const otherwise = freePlace ? [String(claimedMs), String(unknownMs)] : ['0', '0'];
    const reply = await this.#redis.ask('end', key, [
      ended,
      ceilMs(workedMs),
      ...otherwise,
      isKnown ? '1' : '',
    ]);
    if (!reply || !Array.isArray(reply.value)) return own;
    const [theirs, hasWorkedThere]: unknown[] = reply.value;
    if (hasWorkedThere === 1 || isEnded(recordIn(theirs))) freePlace?.();
    if (hasWorkedThere === 1 && !isKnown) await this.#memory.end(key, ended, lifetimes, true);
    return recordIn(theirs) ?? own;
  }

  async markIssued(key: string, lifetimeMs: number): Promise<void> {
    await this.#memory.markIssued(key, lifetimeMs);
    await this.#redis.ask('markIssued', key, ['', ceilMs(lifetimeMs)]);
  }

  async markPresented(key: string, at: number): Promise<void> {
    await this.#memory.markPresented(key, at);
    await this.#redis.ask('markPresented', key, [String(at)]);
  }

  async presentedAt(key: string): Promise<number | undefined> {
    const reply = await this.#redis.ask('presentedAt', key, []);
    return timeIn(recordIn(reply?.value)) ?? this.#memory.presentedAt(key);
  }

  async get(key: string): Promise<string | undefined> {
    const reply = await this.#redis.ask('get', key, []);
    return recordIn(reply?.value) ?? this.#memory.get(key);
  }

  /** Copies a sign-out from Redis to memory, where it lasts at least as long as the record that it replaces. */
  async #copyEnd(key: string, ended: string, lifetimeMs: number): Promise<void> {
    if (isEnded(await this.#memory.get(key))) return;
    const longestMs = Math.max(lifetimeMs, this.#memory.remainingMs(key));
    await this.#memory.end(key, ended, { workedMs: longestMs, claimedMs: longestMs, unknownMs: lifetimeMs });
  }

  /** No request waits for this. The client pipelines commands that are sent in the same tick. */
  async #sendMissed(run: RunScript): Promise<void> {
    let batch: Promise<unknown>[] = [];
    for (const [key, record, lifetimeMs] of this.#memory.entries()) {
      const isUnknown = isEnded(record) && !this.#memory.hasWorked(key);
      if (isUnknown && !this.#places.take(lifetimeMs)) break;
      const isMark = record.startsWith(ISSUED);
      const values = [isMark ? record.slice(ISSUED.length) : record, ceilMs(lifetimeMs)];
      batch.push(run(isMark ? 'markIssued' : 'restore', key, values));
      if (batch.length < BATCH) continue;
      await Promise.all(batch);
      batch = [];
    }
    await Promise.all(batch);
  }
}

function recordIn(reply: unknown): string | undefined {
  return typeof reply === 'string' ? reply : undefined;
}

function ceilMs(ms: number): string {
  return String(Math.ceil(ms));
}
