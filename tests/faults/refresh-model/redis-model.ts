/** A model of a Redis server, what the gateway's two scripts do in TypeScript, and of the network before it. */

import { GET, SWAP } from '../../../src/gateway/refresh/redis-commands.ts';
import type { RedisLink } from '../../../src/gateway/refresh/redis-connection.ts';
import type { ProcessClock, VirtualTime } from './virtual-time.ts';

/** What a client gets: nil is null. */
type RedisReply = null | readonly (string | null)[];

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

/** Between one instance and Redis. `cut`: connections end and cannot be made. `stalled`: nothing arrives until it is over. */
export function redisNetwork(time: VirtualTime, redis: RedisModel) {
  /** Ends a connection. */
  const ends = new Set<(cause: Error) => void>();
  let stalled: (() => void)[] = [];
  let state: 'up' | 'cut' | 'stalled' = 'up';

  /** A message on its way, in either direction. */
  const pass = (arrive: () => void): void => {
    const stall = () => void stalled.push(() => pass(arrive));
    if (state === 'stalled') stall();
    else time.event(ONE_WAY_MS, () => (state === 'stalled' ? stall() : arrive()));
  };

  /** Commands and replies keep their order, as in TCP. */
  const open = (clock: ProcessClock): RedisLink => {
    const { promise: closed, reject } = Promise.withResolvers<never>();
    closed.catch(() => {});
    const sent: (() => void)[] = [];
    const replied: (() => void)[] = [];
    const close = (cause: Error) => {
      ends.delete(end);
      reject(cause);
    };
    const end = (cause: Error) => {
      ends.delete(end);
      sent.length = replied.length = 0;
      clock.reach(() => {
        close(cause);
        link.onclose?.(cause);
      });
    };
    const link: RedisLink = {
      onclose: null,
      connect: () =>
        new Promise((resolve, reject) => {
          const refuse = () => reject(new Error('the connection was refused'));
          pass(() => clock.reach(state === 'cut' ? refuse : resolve));
        }),
      send: (_, parameters) => {
        const { promise, resolve } = Promise.withResolvers<RedisReply>();
        if (!clock.isAlive) return promise;
        if (!ends.has(end)) return Promise.reject(new Error('the connection is closed'));
        sent.push(() => {
          const reply = redis.eval(parameters);
          replied.push(() => clock.reach(() => resolve(reply)));
          pass(() => replied.shift()?.());
        });
        pass(() => sent.shift()?.());
        return Promise.race([promise, closed]);
      },
      close: () => close(new Error('the connection was closed')),
    };
    ends.add(end);
    return link;
  };

  const become = (next: typeof state): void => {
    state = next;
    if (next === 'cut') for (const end of ends) end(new Error('the connection was cut'));
    if (next === 'stalled') return;
    const arrived = stalled;
    stalled = [];
    if (next === 'up') for (const arrive of arrived) arrive();
  };
  /** Messages of the dead process still arrive. */
  const crash = () => ends.clear();
  return { open, become, crash, isUp: () => state === 'up' };
}
