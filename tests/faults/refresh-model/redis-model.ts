/** A model of a Redis server, what the gateway's two scripts do in TypeScript, and of the network before it. */

import { GET, SWAP } from '../../../src/gateway/refresh/redis-commands.ts';
import type { RedisLink } from '../../../src/gateway/refresh/redis-connection.ts';
import type { ProcessClock, VirtualTime } from './virtual-time.ts';

/** What a client gets: nil is null. */
export type RedisReply = null | readonly (string | null)[];

/** A command and its reply take less than the store waits for them. */
const ONE_WAY_MS = 15;

export class RedisModel {
  readonly #entries = new Map<string, { readonly value: string; readonly expiresAt: number }>();
  readonly #now: () => number;

  /** @param now in whole milliseconds, as Redis counts them */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** @param parameters of the command EVAL, the only one that the gateway sends; redis-model.test.ts checks the replies */
  eval([script, , key = '', from, to, lifetimeMs, isOwn]: readonly string[]): RedisReply {
    const now = String(this.#now());
    if (script !== GET && script !== SWAP) throw new Error(`the model of Redis has no script ${script}`);
    const value = this.remainingMs(key) > 0 ? (this.#entries.get(key)?.value ?? null) : null;
    if (script === GET) return [now, value];
    const text = value?.slice(value.indexOf(' ') + 1) ?? '';
    if (text !== from && (value !== null || isOwn !== '1')) return [now, value];
    if (to) this.#entries.set(key, { value: `${now} ${to}`, expiresAt: this.#now() + Number(lifetimeMs) });
    else this.#entries.delete(key);
    return null;
  }

  /** Everything is lost, as by a restart without persistence. */
  empty(): void {
    this.#entries.clear();
  }

  remainingMs(key: string): number {
    return Math.max(0, (this.#entries.get(key)?.expiresAt ?? 0) - this.#now());
  }
}

/** `cut`: connections end and cannot be made. `stalled`: nothing arrives until it is over. */
export type NetworkState = 'up' | 'cut' | 'stalled';

/** Between one instance and Redis. */
export class RedisNetwork {
  readonly #time: VirtualTime;
  readonly #redis: RedisModel;
  readonly #name: string;
  /** Ends a connection; without a cause, because the process at this end has died: its messages still arrive. */
  readonly #ends = new Set<(cause?: Error) => void>();
  #stalled: (() => void)[] = [];
  #state: NetworkState = 'up';

  constructor(time: VirtualTime, redis: RedisModel, name: string) {
    this.#time = time;
    this.#redis = redis;
    this.#name = name;
  }

  get isUp(): boolean {
    return this.#state === 'up';
  }

  become(state: NetworkState): void {
    this.#state = state;
    if (state === 'cut') this.#endAll(new Error('the connection was cut'));
    if (state === 'stalled') return;
    const stalled = this.#stalled.splice(0);
    if (state === 'up') for (const pass of stalled) pass();
  }

  crash(): void {
    this.#endAll();
  }

  /** Commands and replies keep their order, as in TCP. */
  open(clock: ProcessClock): RedisLink {
    const pending = new Set<(cause: Error) => void>();
    const sent: (() => void)[] = [];
    const replied: (() => void)[] = [];
    let isOpen = true;
    const close = (cause?: Error) => {
      this.#ends.delete(end);
      isOpen = false;
      if (cause) for (const reject of pending) reject(cause);
      pending.clear();
    };
    const end = (cause?: Error) => {
      const wasOpen = isOpen;
      if (cause) sent.length = replied.length = 0;
      close(cause);
      if (cause && wasOpen && clock.isAlive) link.onclose?.(cause);
    };
    const link: RedisLink = {
      onclose: null,
      connect: () =>
        new Promise((resolve, reject) => {
          this.#pass('connects to Redis', () => {
            if (this.#state === 'cut') reject(new Error('the connection was refused'));
            else if (clock.isAlive) resolve();
          });
        }),
      send: (_, parameters) => {
        const { promise, resolve, reject } = Promise.withResolvers<RedisReply>();
        if (!isOpen) reject(new Error('the connection is closed'));
        if (!isOpen || !clock.isAlive) return promise;
        pending.add(reject);
        sent.push(() => {
          const reply = this.#redis.eval(parameters);
          replied.push(() => {
            if (pending.delete(reject) && clock.isAlive) resolve(reply);
          });
          this.#pass('← Redis', () => replied.shift()?.());
        });
        this.#pass('→ Redis', () => sent.shift()?.());
        return promise;
      },
      close: () => close(new Error('the connection was closed')),
    };
    this.#ends.add(end);
    return link;
  }

  #endAll(cause?: Error): void {
    for (const end of this.#ends) end(cause);
  }

  /** A message on its way, in either direction. */
  #pass(label: string, arrive: () => void): void {
    const stall = () => void this.#stalled.push(() => this.#pass(label, arrive));
    const happen = () => (this.#state === 'stalled' ? stall() : arrive());
    if (this.#state === 'stalled') stall();
    else this.#time.event(`${this.#name} ${label}`, ONE_WAY_MS, happen);
  }
}
