/** The network between one instance and the model of Redis: connections, delays and outages. */

import type { RedisLink } from '../../../src/gateway/refresh/redis-connection.ts';
import type { RedisModel, RedisReply } from './redis-model.ts';
import type { ProcessClock, VirtualTime } from './virtual-time.ts';

/** A command and its reply take less than the store waits for them. */
const ONE_WAY_MS = 15;

/** `cut`: connections end and cannot be made. `stalled`: nothing arrives until it is over. */
export type NetworkState = 'up' | 'cut' | 'stalled';

interface Link extends RedisLink {
  /** @param cause undefined when the process at this end has died: its messages still arrive */
  end(cause?: Error): void;
}

export class RedisNetwork {
  readonly #time: VirtualTime;
  readonly #redis: RedisModel;
  readonly #name: string;
  readonly #links = new Set<Link>();
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
    const stalled = this.#stalled;
    this.#stalled = [];
    if (state === 'up') for (const pass of stalled) pass();
  }

  crash(): void {
    this.#endAll();
  }

  /** Commands and replies keep their order, as in TCP. */
  open(clock: ProcessClock): RedisLink {
    const sent: (() => void)[] = [];
    const replied: (() => void)[] = [];
    const pending = new Set<(cause: Error) => void>();
    let isOpen = true;
    const close = (cause?: Error) => {
      this.#links.delete(link);
      isOpen = false;
      if (cause) for (const reject of pending) reject(cause);
      pending.clear();
    };
    const link: Link = {
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
      end: (cause) => {
        const wasOpen = isOpen;
        if (cause) sent.length = replied.length = 0;
        close(cause);
        if (cause && wasOpen && clock.isAlive) link.onclose?.(cause);
      },
    };
    this.#links.add(link);
    return link;
  }

  #endAll(cause?: Error): void {
    for (const link of this.#links) link.end(cause);
  }

  /** A message on its way, in either direction. */
  #pass(label: string, arrive: () => void): void {
    const retry = () => this.#pass(label, arrive);
    if (this.#state === 'stalled') this.#stalled.push(retry);
    else {
      this.#time.event(`${this.#name} ${label}`, ONE_WAY_MS, () => {
        if (this.#state === 'stalled') this.#stalled.push(retry);
        else arrive();
      });
    }
  }
}
