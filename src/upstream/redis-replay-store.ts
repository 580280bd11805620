/** The store that instances share: Redis, with this process's own memory for when Redis is slow or down. */

import { RedisClient } from 'bun';
import { describeCause } from '../http/cause.ts';
import { COMMAND_TIMEOUT_MS, inTime, run, type Script } from './redis-commands.ts';
import {
  ENDED,
  ISSUED,
  MemoryReplayStore,
  RENEWED,
  type ReplayStore,
  type SignOutLifetimes,
} from './replay-store.ts';
import { SignOutPlaces } from './sign-out-places.ts';

const RETRY_MS = 1000;
/** How many records one round trip takes to Redis when it is back. */
const BATCH = 500;

/** Hears when Redis goes away, by the name and code of the error, and when it is back. */
export interface RedisObserver {
  onDown(cause: string): void;
  onUp(): void;
}

/**
 * Every record is kept in memory too, so that this process knows what it has done when Redis goes away, and tells
 * Redis when it comes back.
 */
export class RedisReplayStore implements ReplayStore {
  /** Longer than the others wait between two looks. */
  readonly lingerMs = 500;
  readonly #memory = new MemoryReplayStore();
  readonly #places = new SignOutPlaces();
  readonly #url: string;
  readonly #observer: RedisObserver;
  /** Undefined while Redis is taken to be down. */
  #client: Promise<RedisClient> | undefined;

  constructor(url: string, observer: RedisObserver) {
    this.#url = url;
    this.#observer = observer;
    const client = this.#connect();
    this.#client = client;
    client.then(
      () => {
        if (this.#client === client) observer.onUp();
      },
      (cause) => this.#giveUp(client, cause),
    );
  }

  async add(key: string, record: string, lifetimeMs: number): Promise<string | undefined> {
    const reply = await this.#ask('add', key, lifetimeMs, record);
    if (!reply) return this.#memory.add(key, record, lifetimeMs);
    const theirs = recordIn(reply.value);
    if (theirs === ENDED) await this.#hearOfEnd(key, lifetimeMs);
    if (theirs === ENDED || theirs?.startsWith(RENEWED)) return theirs;
    const own = await (theirs === undefined
      ? this.#memory.add(key, record, lifetimeMs)
      : this.#memory.get(key));
    // What Redis does not know this process does: Redis was away, or emptied, when it was found out.
    const isNews = own !== undefined && (theirs === undefined || own === ENDED || own.startsWith(RENEWED));
    if (!isNews) return theirs;
    const remainingMs = this.#memory.remainingMs(key);
    // A sign-out that may be made up stays in Redis no longer than the record that it replaces there.
    const tellMs = this.#memory.hasWorked(key) ? remainingMs : Math.min(remainingMs, lifetimeMs);
    await this.#ask('replace', key, tellMs, own, theirs ?? record);
    return own;
  }

  async replace(key: string, expected: string, record: string, lifetimeMs: number): Promise<boolean> {
    const replaced = await this.#memory.replace(key, expected, record, lifetimeMs);
    const reply = await this.#ask('replace', key, lifetimeMs, record, expected);
    return reply ? reply.value === expected : replaced;
  }

  /**
   * When no place is free, a sign-out that may be made up stays in this instance's memory. One that replaces a claim is
   * written all the same: the instance that refreshes must find it in Redis, and it adds no key.
   */
  async end(key: string, lifetimes: SignOutLifetimes, hasWorked = false): Promise<string | undefined> {
    const own = await this.#memory.end(key, lifetimes, hasWorked);
    if (!this.#client) return own;
    const { workedMs, claimedMs, unknownMs } = lifetimes;
    const isKnown = this.#memory.hasWorked(key);
    const giveBack = isKnown ? undefined : this.#places.take(Math.max(claimedMs, unknownMs));
    const otherwise = giveBack ? [String(claimedMs), String(unknownMs)] : ['0', '0'];
    const reply = await this.#ask('end', key, workedMs, ENDED, ...otherwise, isKnown ? '1' : '');
    if (!reply || !Array.isArray(reply.value)) return own;
    const [theirs, hasWorkedThere]: unknown[] = reply.value;
    if (hasWorkedThere === 1 || theirs === ENDED) giveBack?.();
    if (hasWorkedThere === 1 && !isKnown) await this.#memory.end(key, lifetimes, true);
    return recordIn(theirs) ?? own;
  }

  async markIssued(key: string, lifetimeMs: number): Promise<void> {
    await this.#memory.markIssued(key, lifetimeMs);
    await this.#ask('markIssued', key, lifetimeMs);
  }

  async get(key: string): Promise<string | undefined> {
    const reply = await this.#ask('get', key, 0);
    return recordIn(reply?.value) ?? this.#memory.get(key);
  }

  /** Keeps the sign-out here too, for when Redis goes away, for at least as long as the record that it replaces. */
  async #hearOfEnd(key: string, lifetimeMs: number): Promise<void> {
    if ((await this.#memory.get(key)) === ENDED) return;
    const longestMs = Math.max(lifetimeMs, this.#memory.remainingMs(key));
    await this.#memory.end(key, { workedMs: longestMs, claimedMs: longestMs, unknownMs: lifetimeMs });
  }

  /** Undefined when Redis did not answer in time. */
  async #ask(
    script: Script,
    key: string,
    lifetimeMs: number,
    record = '',
    ...values: string[]
  ): Promise<{ readonly value: unknown } | undefined> {
    const client = this.#client;
    if (!client) return undefined;
    try {
      const value = await inTime(
        client.then((redis) => run(redis, script, key, [record, String(Math.ceil(lifetimeMs)), ...values])),
        COMMAND_TIMEOUT_MS,
      );
      return { value };
    } catch (cause) {
      this.#giveUp(client, cause);
      return undefined;
    }
  }

  #giveUp(client: Promise<RedisClient>, cause: unknown): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#observer.onDown(describeCause(cause));
    client.then((redis) => redis.close()).catch(() => {});
    this.#retryLater();
  }

  #retryLater(): void {
    setTimeout(() => this.#retry(), RETRY_MS).unref();
  }

  async #retry(): Promise<void> {
    const client = this.#connect();
    try {
      const redis = await inTime(client, RETRY_MS);
      await this.#tellMissed(redis);
      // A write: a read-only replica answers a ping.
      await inTime(run(redis, 'markIssued', 'probe', ['', '1000']), COMMAND_TIMEOUT_MS);
      this.#client = client;
      this.#observer.onUp();
    } catch {
      client.then((redis) => redis.close()).catch(() => {});
      this.#retryLater();
    }
  }

  /** No request waits for this. The client pipelines the commands that are given in one turn. */
  async #tellMissed(redis: RedisClient): Promise<void> {
    let batch: Promise<unknown>[] = [];
    for (const [key, record, lifetimeMs] of this.#memory.entries()) {
      const isUnknown = record === ENDED && !this.#memory.hasWorked(key);
      if (isUnknown && !this.#places.take(lifetimeMs)) break;
      const values = [record, String(Math.ceil(lifetimeMs))];
      batch.push(run(redis, record === ISSUED ? 'markIssued' : 'tell', key, values));
      if (batch.length < BATCH) continue;
      await inTime(Promise.all(batch), RETRY_MS);
      batch = [];
    }
    await inTime(Promise.all(batch), RETRY_MS);
  }

  #connect(): Promise<RedisClient> {
    const redis = new RedisClient(this.#url, { autoReconnect: false, connectionTimeout: RETRY_MS });
    const client = redis.connect().then(() => redis);
    // Known at once, and not by the next refresh.
    redis.onclose = (cause) => this.#giveUp(client, cause);
    return client;
  }
}

function recordIn(reply: unknown): string | undefined {
  return typeof reply === 'string' ? reply : undefined;
}
