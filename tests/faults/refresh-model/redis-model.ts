/** A model of a Redis server: what the gateway's two scripts do, in TypeScript, at the caller's time. */

import { GET, SWAP } from '../../../src/gateway/refresh/redis-commands.ts';

interface Entry {
  readonly value: string;
  readonly expiresAt: number;
}

/** What a client gets: nil is null. */
export type RedisReply = null | readonly (string | null)[];

export class RedisModel {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;

  /** @param now in whole milliseconds, as Redis counts them */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** @param parameters of the command EVAL, the only one that the gateway sends; redis-model.test.ts checks the replies */
  eval([script, , key = '', from, to, lifetimeMs, isOwn]: readonly string[]): RedisReply {
    const now = String(this.#now());
    if (script !== GET && script !== SWAP) throw new Error(`the model of Redis has no script ${script}`);
    const value = this.get(key);
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

  get(key: string): string | null {
    return this.#read(key)?.value ?? null;
  }

  remainingMs(key: string): number {
    return (this.#read(key)?.expiresAt ?? 0) - this.#now();
  }

  #read(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    return entry && entry.expiresAt > this.#now() ? entry : undefined;
  }
}
