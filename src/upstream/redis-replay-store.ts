/** The store that instances share: Redis, with this process's own memory for when Redis is slow or down. */

import { RedisClient } from 'bun';
import { describeCause } from '../http/cause.ts';
import { CLAIMED, ENDED, MemoryReplayStore, RENEWED, type ReplayStore } from './replay-store.ts';

/** Three of these waits, as a refresh has, fit in the quarter second by which Redis may delay a request. */
const COMMAND_TIMEOUT_MS = 80;
const RETRY_MS = 1000;
const KEY_PREFIX = 'music-gateway:refresh:';

/** Each gives the record that was there. KEYS[1]: the key; ARGV: record, its lifetime in ms, the expected record. */
const WRITE = `redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])`;
const SCRIPTS = {
  add: `local r = redis.call('GET', KEYS[1]) if not r then ${WRITE} end return r`,
  replace: `local r = redis.call('GET', KEYS[1]) if r == ARGV[3] then ${WRITE} end return r`,
  put: `local r = redis.call('GET', KEYS[1]) ${WRITE} return r`,
  get: `return redis.call('GET', KEYS[1])`,
  /** After an outage: what another instance has found out in the meantime stands, a mere claim does not. */
  tell: `local r = redis.call('GET', KEYS[1])
    local claim = r and string.sub(r, 1, ${CLAIMED.length}) == '${CLAIMED}'
    if not r or ARGV[1] == '${ENDED}' or (claim and string.sub(ARGV[1], 1, ${CLAIMED.length}) ~= '${CLAIMED}') then ${WRITE} end
    return r`,
} as const;

/** Hears when Redis goes away, by the name and code of the error, and when it is back. */
export interface RedisObserver {
  onDown(cause: string): void;
  onUp(): void;
}

/** Undefined when Redis did not answer in time. */
type Answer = { readonly record: string | undefined } | undefined;

/**
 * Every record is kept in memory too, so that this process knows what it has done when Redis goes away, and tells
 * Redis when it comes back.
 */
export class RedisReplayStore implements ReplayStore {
  /** Longer than the others wait between two looks. */
  readonly lingerMs = 500;
  readonly #memory = new MemoryReplayStore();
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
    const answer = await this.#ask('add', key, lifetimeMs, record);
    if (!answer) return this.#memory.add(key, record, lifetimeMs);
    const theirs = answer.record;
    // So that the sign-out is known here too when Redis goes away.
    if (theirs === ENDED) await this.#memory.put(key, ENDED, lifetimeMs);
    if (theirs === ENDED || theirs?.startsWith(RENEWED)) return theirs;
    const own = await (theirs === undefined
      ? this.#memory.add(key, record, lifetimeMs)
      : this.#memory.get(key));
    // What Redis does not know this process does: Redis was away, or emptied, when it was found out.
    const isNews = own !== undefined && (theirs === undefined || own === ENDED || own.startsWith(RENEWED));
    if (!isNews) return theirs;
    await this.#ask('replace', key, this.#memory.remainingMs(key), own, theirs ?? record);
    return own;
  }

  async replace(key: string, expected: string, record: string, lifetimeMs: number): Promise<boolean> {
    const replaced = await this.#memory.replace(key, expected, record, lifetimeMs);
    const answer = await this.#ask('replace', key, lifetimeMs, record, expected);
    return answer ? answer.record === expected : replaced;
  }

  async put(key: string, record: string, lifetimeMs: number): Promise<string | undefined> {
    const own = await this.#memory.put(key, record, lifetimeMs);
    const answer = await this.#ask('put', key, lifetimeMs, record);
    return answer?.record ?? own;
  }

  async get(key: string): Promise<string | undefined> {
    const answer = await this.#ask('get', key, 0);
    return answer?.record ?? this.#memory.get(key);
  }

  async #ask(
    script: keyof typeof SCRIPTS,
    key: string,
    lifetimeMs: number,
    record = '',
    expected = '',
  ): Promise<Answer> {
    const client = this.#client;
    if (!client) return undefined;
    try {
      const reply = await inTime(
        client.then((redis) => run(redis, script, [key, record, String(Math.ceil(lifetimeMs)), expected])),
        COMMAND_TIMEOUT_MS,
      );
      return { record: typeof reply === 'string' ? reply : undefined };
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
      for (const [key, record, lifetimeMs] of this.#memory.entries()) {
        await inTime(
          run(redis, 'tell', [key, record, String(Math.ceil(lifetimeMs)), '']),
          COMMAND_TIMEOUT_MS,
        );
      }
      // A write: a read-only replica answers a ping.
      await inTime(run(redis, 'put', ['probe', '', '1000']), COMMAND_TIMEOUT_MS);
      this.#client = client;
      this.#observer.onUp();
    } catch {
      client.then((redis) => redis.close()).catch(() => {});
      this.#retryLater();
    }
  }

  #connect(): Promise<RedisClient> {
    const redis = new RedisClient(this.#url, { autoReconnect: false, connectionTimeout: RETRY_MS });
    const client = redis.connect().then(() => redis);
    // Known at once, and not by the next refresh.
    redis.onclose = (cause) => this.#giveUp(client, cause);
    return client;
  }
}

function run(
  redis: RedisClient,
  script: keyof typeof SCRIPTS,
  [key = '', ...values]: string[],
): Promise<unknown> {
  return redis.send('EVAL', [SCRIPTS[script], '1', KEY_PREFIX + key, ...values]);
}

/** Rejects when the promise takes longer; not before what has already arrived was looked at. */
async function inTime<Result>(promise: Promise<Result>, timeoutMs: number): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const fail = () => setImmediate(reject, new DOMException('', 'TimeoutError'));
  // In halves: when this process itself was held up, the first one is late and Redis still has the second.
  let timer = setTimeout(() => {
    timer = setTimeout(fail, timeoutMs / 2);
  }, timeoutMs / 2);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
