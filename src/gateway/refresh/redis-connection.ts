/** The connection to Redis, which reconnects after an outage. */

import { RedisClient } from 'bun';
import { describeCause } from '../http/error-summary.ts';
import { type Clock, systemClock } from './clock.ts';
import { COMMAND_TIMEOUT_MS, inTime, run, type Script } from './redis-commands.ts';

const RETRY_MS = 1000;

/** A connection that is opened only once. */
export interface RedisLink {
  connect(): Promise<void>;
  send(command: string, parameters: string[]): Promise<unknown>;
  close(): void;
  onclose: ((cause: Error) => void) | null;
}

export type RunScript = (script: Script, key: string, values: string[]) => Promise<unknown>;

/** The part of Redis that a replay store uses. */
export interface Redis {
  readonly isUp: boolean;
  /** Undefined when Redis does not respond in time. It then counts as down until the connection has been restored. */
  ask(...command: Parameters<RunScript>): Promise<{ readonly value: unknown } | undefined>;
  /** Sets the work to do after a reconnect, before Redis counts as up. */
  onReconnect(sendMissed: (run: RunScript) => Promise<void>): void;
}

/** Called when Redis goes down, with the name and code of the error, and when it is up again. */
export interface RedisObserver {
  onDown(cause: string): void;
  onUp(): void;
}

export class RedisConnection implements Redis {
  readonly #url: string;
  readonly #observer: RedisObserver;
  readonly #clock: Clock;
  readonly #open: (url: string) => RedisLink;
  #sendMissed: (run: RunScript) => Promise<void> = async () => {};
  /** Undefined while Redis counts as down. */
  #client: Promise<RedisLink> | undefined;

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

  onReconnect(sendMissed: (run: RunScript) => Promise<void>): void {
    this.#sendMissed = sendMissed;
  }

  async ask(...command: Parameters<RunScript>): Promise<{ readonly value: unknown } | undefined> {
    const client = this.#client;
    if (!client) return undefined;
    try {
      const value = await inTime(
        client.then((redis) => run(redis, ...command)),
        COMMAND_TIMEOUT_MS,
        this.#clock,
      );
      return { value };
    } catch (cause) {
      this.#giveUp(client, cause);
      return undefined;
    }
  }

  #giveUp(client: Promise<RedisLink>, cause: unknown): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#observer.onDown(describeCause(cause));
    client.then((redis) => redis.close()).catch(() => {});
    this.#retryLater();
  }

  #retryLater(): void {
    void this.#clock.sleep(RETRY_MS).then(() => this.#retry());
  }

  async #retry(): Promise<void> {
    const client = this.#connect();
    try {
      const redis = await inTime(client, RETRY_MS, this.#clock);
      await this.#sendMissed((...command) => inTime(run(redis, ...command), RETRY_MS, this.#clock));
      // This probe writes, because a read-only replica would respond to a ping.
      await inTime(run(redis, 'markIssued', 'probe', ['', '1000']), COMMAND_TIMEOUT_MS, this.#clock);
      this.#client = client;
      this.#observer.onUp();
    } catch {
      client.then((redis) => redis.close()).catch(() => {});
      this.#retryLater();
    }
  }

  #connect(): Promise<RedisLink> {
    const redis = this.#open(this.#url);
    const client = redis.connect().then(() => redis);
    // Notices a lost connection at once, not only at the next refresh.
    redis.onclose = (cause) => this.#giveUp(client, cause);
    return client;
  }
}

function openLink(url: string): RedisLink {
  return new RedisClient(url, { autoReconnect: false, connectionTimeout: RETRY_MS });
}
