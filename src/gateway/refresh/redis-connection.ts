/** The connection to Redis, which reconnects after an outage. */

import { RedisClient } from 'bun';
import { describeCause } from '../http/error-summary.ts';
import { type Clock, systemClock } from './clock.ts';
import { get, type RedisSender, tryOut } from './redis-commands.ts';

/** Longer than a busy machine stalls, because instances that miss Redis may send the same token twice. */
export const COMMAND_TIMEOUT_MS = 500;
const RETRY_MS = 250;
const CONNECT_MS = 1000;
/** Less than NAT and firewalls keep an idle connection. Bun's client has no keep-alive of TCP. */
const KEEP_ALIVE_MS = 30_000;

/** A connection that is opened only once. */
export interface RedisLink extends RedisSender {
  connect(): Promise<void>;
  close(): void;
  onclose: ((cause: Error) => void) | null;
}

export interface RedisObserver {
  /** @param cause the name and code of the error, or the first word of Redis' refusal */
  onDown(cause: string): void;
  /** Called when Redis can be used, at first and after each outage. */
  onUp(): void;
}

interface Link {
  readonly ready: Promise<RedisLink>;
  isReady: boolean;
}

export class RedisConnection {
  readonly #url: string;
  readonly #observer: RedisObserver;
  readonly #clock: Clock;
  readonly #open: (url: string) => RedisLink;
  /** Undefined while Redis counts as down. */
  #link: Link | undefined;

  constructor(url: string, observer: RedisObserver, clock = systemClock, open = openLink) {
    this.#url = url;
    this.#observer = observer;
    this.#clock = clock;
    this.#open = open;
    const link = this.#connect();
    // The first commands wait for the connection.
    this.#link = link;
    link.ready.then(
      () => this.#link === link && observer.onUp(),
      (cause) => this.#giveUp(link, cause),
    );
  }

  /**
   * Undefined when Redis does not respond in time, also on a new connection. It then counts as down until it is connected
   * again.
   *
   * @param command may be sent twice, and have been executed the first time
   */
  async ask<Reply>(
    command: (redis: RedisSender, isRepeated: boolean) => Promise<Reply>,
  ): Promise<Reply | undefined> {
    for (const isRepeated of [false, true]) {
      const link = this.#link;
      if (!link) break;
      try {
        const reply = link.ready.then((redis) => command(redis, isRepeated));
        return await inTime(reply, COMMAND_TIMEOUT_MS, this.#clock);
      } catch (cause) {
        this.#replace(link, cause);
      }
    }
    return undefined;
  }

  /** Keeps the idle link from being dropped, and notices when it was. */
  keepAlive(): void {
    this.#clock.every(KEEP_ALIVE_MS, () => void this.ask((redis) => get(redis, 'keep-alive')));
  }

  /** A link may have been dropped while Redis is well. One that has never worked is not replaced. */
  #replace(lost: Link, cause: unknown): void {
    if (this.#link !== lost) return;
    if (!lost.isReady) return void this.#giveUp(lost, cause);
    const link = this.#connect();
    this.#link = link;
    close(lost);
    link.ready.catch(() => this.#giveUp(link, cause));
  }

  async #giveUp(lost: Link, cause: unknown): Promise<void> {
    if (this.#link !== lost) return;
    this.#link = undefined;
    const word = refusalWord(cause);
    this.#observer.onDown(word ? `RedisError ${word}` : describeCause(cause));
    close(lost);
    while (!this.#link) {
      await this.#clock.sleep(RETRY_MS);
      const link = this.#connect();
      const isConnected = await link.ready.then(() => true).catch(() => false);
      if (isConnected) this.#link = link;
    }
    this.#observer.onUp();
  }

  #connect(): Link {
    const redis = this.#open(this.#url);
    const link: Link = { ready: this.#probe(redis), isReady: false };
    link.ready.then(
      () => {
        link.isReady = true;
      },
      () => {},
    );
    // Notices a lost connection at once, not only at the next refresh.
    redis.onclose = (cause) => this.#replace(link, cause);
    return link;
  }

  async #probe(redis: RedisLink): Promise<RedisLink> {
    try {
      await inTime(redis.connect(), CONNECT_MS, this.#clock);
      await inTime(tryOut(redis, crypto.randomUUID()), COMMAND_TIMEOUT_MS, this.#clock);
      return redis;
    } catch (cause) {
      redis.onclose = null;
      redis.close();
      throw cause;
    }
  }
}

function close({ ready }: Link): void {
  ready.then((redis) => redis.close()).catch(() => {});
}

/** A refusal of Redis begins with a word for the reason, such as OOM or NOPERM. The rest may quote a key. */
export function refusalWord(cause: unknown): string | undefined {
  return cause instanceof Error ? /^[A-Z]{3,20}\b/.exec(cause.message)?.[0] : undefined;
}

/** @param connectionTimeout in ms; long, because Bun takes a stall of this process for one of Redis */
export function openLink(url: string, connectionTimeout = 10 * CONNECT_MS): RedisLink {
  return new RedisClient(url, { autoReconnect: false, connectionTimeout });
}

/** Rejects when the promise takes longer, but only after replies that have already arrived were processed. */
async function inTime<Result>(promise: Promise<Result>, timeoutMs: number, clock: Clock): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  // Two half-length timers: if the event loop was blocked, the first fires late and Redis still gets the second half.
  let halves = 0;
  const stop = clock.every(timeoutMs / 2, () => {
    halves++;
    if (halves === 2) void clock.sleep(0).then(() => reject(new DOMException('', 'TimeoutError')));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    stop();
  }
}
