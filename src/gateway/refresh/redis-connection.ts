/** The connection to Redis, which reconnects after an outage. */

import { RedisClient } from 'bun';
import { describeCause } from '../http/error-summary.ts';
import { type Clock, systemClock } from './clock.ts';
import { COMMAND_TIMEOUT_MS, type Command, run } from './redis-commands.ts';

const RETRY_MS = 250;
const CONNECT_MS = 1000;
/** Longer than a restart of Redis takes, or the election of another one. */
const PATIENCE_MS = 5000;
/** When this instance has Redis again, another one may still be at an attempt that began before Redis was back. */
const SETTLE_MS = CONNECT_MS + 2 * RETRY_MS;

/** A connection that is opened only once. */
export interface RedisLink {
  connect(): Promise<void>;
  send(command: string, parameters: string[]): Promise<unknown>;
  close(): void;
  onclose: ((cause: Error) => void) | null;
}

/** Sends these commands in one round trip. Rejects when one of them fails, or Redis does not respond in time. */
export type SendBatch = (commands: readonly Command[]) => Promise<unknown>;

/** Called when Redis goes down, with the name and code of the error or the first word of Redis, and when it is up again. */
export interface RedisObserver {
  onDown(cause: string): void;
  onUp(): void;
}

export class RedisConnection {
  readonly #url: string;
  readonly #observer: RedisObserver;
  readonly #clock: Clock;
  readonly #open: (url: string) => RedisLink;
  #sendMissed: (send: SendBatch) => Promise<void> = async () => {};
  /** Undefined while Redis counts as down. */
  #client: Promise<RedisLink> | undefined;
  /** Until it resolves, the instances may not know each other's refreshes. */
  #shared: Promise<void> = Promise.resolve();
  #endWait = () => {};

  constructor(url: string, observer: RedisObserver, clock = systemClock, open = openLink) {
    this.#url = url;
    this.#observer = observer;
    this.#clock = clock;
    this.#open = open;
    const client = this.#connect();
    this.#client = client;
    client.then(
      () => {
        if (this.#client === client) observer.onUp();
      },
      (cause) => this.#giveUp(client, cause),
    );
  }

  get isUp(): boolean {
    return this.#client !== undefined;
  }

  /** Sets the work to do after a reconnect, before Redis counts as up. */
  onReconnect(sendMissed: (send: SendBatch) => Promise<void>): void {
    this.#sendMissed = sendMissed;
  }

  /** Undefined when Redis does not respond in time. It then counts as down until the connection has been restored. */
  async ask(...command: Command): Promise<{ readonly value: unknown } | undefined> {
    const client = this.#client;
    if (!client) return undefined;
    try {
      const reply = client.then((redis) => run(redis, ...command));
      return { value: await inTime(reply, COMMAND_TIMEOUT_MS, this.#clock) };
    } catch (cause) {
      this.#giveUp(client, cause);
      return undefined;
    }
  }

  /**
   * Asks what no instance may do that another one has done: first waits until all have had the time to reconnect, for
   * a few seconds at the beginning of an outage. Undefined when Redis stays away.
   */
  async askShared(...command: Command): Promise<{ readonly value: unknown } | undefined> {
    const patientUntil = this.#clock.now() + PATIENCE_MS;
    await this.#untilShared(patientUntil);
    const reply = await this.ask(...command);
    if (reply) return reply;
    // The outage may have begun with this command.
    await this.#untilShared(patientUntil);
    return this.ask(...command);
  }

  /** Lets everything go on that waits, until the next outage. */
  stopWaiting(): void {
    this.#endWait();
  }

  async #untilShared(patientUntil: number): Promise<void> {
    // Meanwhile Redis may have come back, or gone away again.
    for (let ended: unknown; ended !== this.#shared && this.#clock.now() < patientUntil; ) {
      ended = this.#shared;
      await ended;
    }
  }

  #wait(ms: number): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#endWait();
    this.#shared = promise;
    this.#endWait = resolve;
    void this.#clock.sleep(ms).then(resolve);
  }

  #giveUp(client: Promise<RedisLink>, cause: unknown): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#observer.onDown(describeRedisCause(cause));
    client.then((redis) => redis.close()).catch(() => {});
    this.#wait(PATIENCE_MS);
    void this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    await this.#clock.sleep(RETRY_MS);
    const client = this.#connect();
    try {
      const redis = await client;
      await this.#sendMissed((commands) => {
        // The client pipelines commands that are sent in the same tick.
        const replies = Promise.all(commands.map((command) => run(redis, ...command)));
        return inTime(replies, CONNECT_MS, this.#clock);
      });
      this.#client = client;
      this.#wait(SETTLE_MS);
      this.#observer.onUp();
    } catch {
      client.then((redis) => redis.close()).catch(() => {});
      void this.#reconnect();
    }
  }

  #connect(): Promise<RedisLink> {
    const redis = this.#open(this.#url);
    const client = this.#probe(redis).catch((cause) => {
      redis.onclose = null;
      redis.close();
      throw cause;
    });
    // Notices a lost connection at once, not only at the next refresh.
    redis.onclose = (cause) => this.#giveUp(client, cause);
    return client;
  }

  /** Uses every command of all scripts, because a replica, a full Redis or an ACL would refuse only some. */
  async #probe(redis: RedisLink): Promise<RedisLink> {
    await inTime(redis.connect(), CONNECT_MS, this.#clock);
    const replies = Promise.all([
      run(redis, 'end', 'probe', ['ended:0', '1000', '1000', '1000', '']),
      run(redis, 'markIssued', 'probe', ['', '2000']),
    ]);
    await inTime(replies, COMMAND_TIMEOUT_MS, this.#clock);
    return redis;
  }
}

function describeRedisCause(cause: unknown): string {
  const word = refusalWord(cause);
  return word ? `RedisError ${word}` : describeCause(cause);
}

/** An error of Redis begins with a word that says what is wrong, such as OOM or NOPERM; the rest may quote a key. */
export function refusalWord(cause: unknown): string | undefined {
  return cause instanceof Error ? /^[A-Z]{3,20}\b/.exec(cause.message)?.[0] : undefined;
}

export function openLink(url: string): RedisLink {
  return new RedisClient(url, { autoReconnect: false, connectionTimeout: CONNECT_MS });
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
