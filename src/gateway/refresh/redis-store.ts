/** The store that instances share: Redis, with this process's own memory while Redis is slow or down. */

import type { Budget } from '../http/admission/budget.ts';
import { MemoryReplayStore } from './memory-store.ts';
import type { Ended, TokenRecord } from './record.ts';
import { type Command, encodeRecord, parseRecord } from './redis-commands.ts';
import type { RedisConnection, SendBatch } from './redis-connection.ts';
import { SignOutPlaces } from './sign-out-places.ts';
import type { ReplayStore, SignOutLifetimes } from './store.ts';

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
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection, ledger: Budget, now = Date.now) {
    this.#redis = redis;
    // What has no room in memory leaves Redis as well, which bounds what one instance keeps there.
    this.#memory = new MemoryReplayStore(ledger, now, (key, { kind }) => {
      if (kind === 'renewed' || kind === 'issued') void redis.ask('evict', key, [kind]);
    });
    this.#places = new SignOutPlaces(now);
    redis.onReconnect((send) => this.#sendMissed(send));
  }

  async add(key: string, record: TokenRecord, lifetimeMs: number): Promise<TokenRecord | undefined> {
    const known = (await this.#memory.get(key))?.kind;
    // Another instance may know more of a token that is about to be refreshed.
    const isFirst = record.kind === 'claimed' && (known === undefined || known === 'unreachable');
    const command: Command = ['add', key, [encodeRecord(record), ceilMs(lifetimeMs)]];
    const reply = await (isFirst ? this.#redis.askShared(...command) : this.#redis.ask(...command));
    if (!reply) return this.#memory.add(key, record, lifetimeMs);
    const theirs = recordIn(reply.value);
    if (theirs?.kind === 'ended') await this.#copyEnd(key, theirs, lifetimeMs);
    if (theirs?.kind === 'ended' || theirs?.kind === 'renewed') return theirs;
    const own = await (theirs === undefined
      ? this.#memory.add(key, record, lifetimeMs)
      : this.#memory.get(key));
    // This process may know more than Redis, if Redis was down or has been emptied since.
    const isNewer = theirs === undefined || own?.kind === 'ended' || own?.kind === 'renewed';
    if (!own || !isNewer) return theirs;
    const remainingMs = this.#memory.remainingMs(key);
    // A sign-out whose token has not worked may be made up, so in Redis it lasts no longer than the record it replaces.
    const ownMs = this.#memory.hasWorked(key) ? remainingMs : Math.min(remainingMs, lifetimeMs);
    const values = [encodeRecord(own), ceilMs(ownMs), encodeRecord(theirs ?? record)];
    const there = recordIn((await this.#redis.ask('replace', key, values))?.value);
    // Another instance has ended the session since the first reply.
    if (there?.kind !== 'ended') return own;
    await this.#copyEnd(key, there, lifetimeMs);
    return there;
  }

  async replace(
    key: string,
    expected: TokenRecord,
    record: TokenRecord,
    lifetimeMs: number,
  ): Promise<boolean> {
    const own = await this.#memory.get(key);
    // Redis may have kept this sign-out with another time than this process has.
    const ownExpected = own?.kind === 'ended' && expected.kind === 'ended' ? own : expected;
    const isReplaced = await this.#memory.replace(key, ownExpected, record, lifetimeMs);
    const text = encodeRecord(expected);
    const reply = await this.#redis.ask('replace', key, [encodeRecord(record), ceilMs(lifetimeMs), text]);
    if (!reply) return isReplaced;
    if (reply.value !== text) return false;
    // What another instance had written was not in this one's memory.
    if (!isReplaced) await this.#memory.add(key, record, lifetimeMs);
    return true;
  }

  /**
   * When no place is free, a sign-out that may be made up stays only in this instance's memory. One that replaces a
   * claim is always written: the instance that refreshes must find it in Redis, and it adds no key.
   */
  async end(
    key: string,
    ended: Ended,
    lifetimes: SignOutLifetimes,
    hasWorked = false,
  ): Promise<TokenRecord | undefined> {
    const own = await this.#memory.end(key, ended, lifetimes, hasWorked);
    if (!this.#redis.isUp) return own;
    const { workedMs, claimedMs, unknownMs } = lifetimes;
    const isKnown = this.#memory.hasWorked(key);
    const freePlace = isKnown ? undefined : this.#places.take(Math.max(claimedMs, unknownMs));
    const otherwise = freePlace ? [String(claimedMs), String(unknownMs)] : ['0', '0'];
    const values = [encodeRecord(ended), ceilMs(workedMs), ...otherwise, isKnown ? '1' : ''];
    const reply = await this.#redis.ask('end', key, values);
    if (!reply || !Array.isArray(reply.value)) return own;
    const [previous, hasWorkedThere]: unknown[] = reply.value;
    const theirs = recordIn(previous);
    if (hasWorkedThere === 1 || theirs?.kind === 'ended') freePlace?.();
    if (hasWorkedThere === 1 && !isKnown) await this.#memory.end(key, ended, lifetimes, true);
    // Another instance may be ending the same chain: what this one knows of it leads on to the next token.
    return theirs?.kind === 'ended' && own?.kind === 'renewed' ? own : (theirs ?? own);
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
    return typeof reply?.value === 'string' && reply.value
      ? Number(reply.value)
      : this.#memory.presentedAt(key);
  }

  async get(key: string): Promise<TokenRecord | undefined> {
    const reply = await this.#redis.ask('get', key, []);
    return recordIn(reply?.value) ?? this.#memory.get(key);
  }

  stopWaiting(): void {
    this.#redis.stopWaiting();
  }

  /** Copies a sign-out from Redis to memory, where it lasts at least as long as what it ends. */
  async #copyEnd(key: string, ended: Ended, lifetimeMs: number): Promise<void> {
    if ((await this.#memory.get(key))?.kind === 'ended') return;
    const longestMs = Math.max(lifetimeMs, this.#memory.remainingMs(key), this.#memory.issuedMs(key));
    await this.#memory.end(key, ended, { workedMs: longestMs, claimedMs: longestMs, unknownMs: lifetimeMs });
  }

  /** Starts again from the first record after a failure, because Redis may have been emptied meanwhile. */
  async #sendMissed(send: SendBatch): Promise<void> {
    const freePlaces: (() => void)[] = [];
    let batch: Command[] = [];
    try {
      for (const command of this.#missed(freePlaces)) {
        batch.push(command);
        if (batch.length < BATCH) continue;
        await send(batch);
        batch = [];
      }
      await send(batch);
    } catch (cause) {
      for (const freePlace of freePlaces) freePlace();
      throw cause;
    }
  }

  /** @param freePlaces gets a function for each place that is taken */
  *#missed(freePlaces: (() => void)[]): Generator<Command> {
    for (const [key, kept, lifetimeMs] of this.#memory.entries()) {
      if (kept.kind === 'issued') {
        yield ['markIssued', key, [String(kept.presentedAt ?? ''), ceilMs(lifetimeMs)]];
        continue;
      }
      if (kept.kind === 'ended' && !this.#memory.hasWorked(key)) {
        const freePlace = this.#places.take(lifetimeMs);
        if (!freePlace) return;
        freePlaces.push(freePlace);
      }
      yield ['restore', key, [encodeRecord(kept), ceilMs(lifetimeMs)]];
    }
  }
}

function recordIn(reply: unknown): TokenRecord | undefined {
  return typeof reply === 'string' ? parseRecord(reply) : undefined;
}

function ceilMs(ms: number): string {
  return String(Math.ceil(ms));
}
