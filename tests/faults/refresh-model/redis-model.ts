/** A model of a Redis server: what the gateway's scripts do, in TypeScript, at the caller's time. */

import { CLAIMED, ENDED, RENEWED, run, type Script } from '../../../src/gateway/refresh/redis-commands.ts';

interface Entry {
  readonly value: string;
  readonly expiresAt: number;
}

/** What a client gets: nil is null. */
export type RedisReply = string | number | null | readonly RedisReply[];

interface Call {
  readonly redis: RedisModel;
  /** The two keys. */
  readonly record: string;
  readonly issued: string;
  readonly values: readonly string[];
}
type Apply = (call: Call) => RedisReply;

const hasKind = (kind: string, record: string | null) => record?.startsWith(kind) ?? false;

/** By their names in redis-commands.ts, with which redis-model.test.ts compares them. */
const SCRIPTS = new Map<Script, Apply>([
  [
    'add',
    ({ redis, record, values: [value = '', ms] }) => {
      const before = redis.get(record);
      if (before === null) redis.set(record, value, Number(ms));
      return before;
    },
  ],
  [
    'replace',
    ({ redis, record, values: [value = '', ms, expected] }) => {
      const before = redis.get(record);
      if (before === expected) redis.set(record, value, Number(ms));
      return before;
    },
  ],
  ['get', ({ redis, record }) => redis.get(record)],
  [
    'markIssued',
    ({ redis, record, issued, values: [presentedAt = '', ms] }) => {
      const before = redis.get(record);
      redis.set(issued, redis.get(issued) || presentedAt, Number(ms));
      if (hasKind(ENDED, before)) redis.prolong(record, Number(ms));
      return before;
    },
  ],
  [
    'markPresented',
    ({ redis, issued, values: [presentedAt = ''] }) => {
      if (redis.get(issued) === '') redis.set(issued, presentedAt);
      return null;
    },
  ],
  ['presentedAt', ({ redis, issued }) => redis.get(issued)],
  [
    'end',
    ({ redis, record, issued, values: [value = '', workedMs, claimedMs, unknownMs, isKnown] }) => {
      const before = redis.get(record);
      const isEnded = hasKind(ENDED, before);
      const isClaim = hasKind(CLAIMED, before);
      const hasWorked = isKnown === '1' || hasKind(RENEWED, before) || redis.get(issued) !== null;
      const otherMs = isClaim ? claimedMs : unknownMs;
      if (hasWorked) redis.set(record, isEnded && before ? before : value, Number(workedMs));
      else if (!isEnded && otherMs !== '0') redis.set(record, value, Number(otherMs));
      else if (isClaim) redis.set(record, value);
      return [before, hasWorked ? 1 : 0];
    },
  ],
  [
    'restore',
    ({ redis, record, issued, values: [value = '', ms] }) => {
      const before = redis.get(record);
      if (hasKind(ENDED, value)) {
        redis.set(record, value, Math.max(Number(ms), redis.remainingMs(record), redis.remainingMs(issued)));
      } else if (
        before === null ||
        before === 'unreachable' ||
        (hasKind(CLAIMED, before) && !hasKind(CLAIMED, value))
      ) {
        redis.set(record, value, Number(ms));
      } else if (hasKind(ENDED, before) && hasKind(RENEWED, value)) redis.prolong(record, Number(ms));
      return before;
    },
  ],
]);

/** By the text that the gateway sends. */
const scripts = new Map<string | undefined, Apply>();
for (const [name, apply] of SCRIPTS) {
  const keep = async (_: string, [text]: readonly string[]) => scripts.set(text, apply);
  void run({ send: keep }, name, '', []);
}

export class RedisModel {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;

  /** @param now in whole milliseconds, as Redis counts them */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** @param parameters of the command EVAL, the only one that the gateway sends */
  eval([text, , record = '', issued = '', ...values]: readonly string[]): RedisReply {
    const apply = scripts.get(text);
    if (!apply) throw new Error(`the model of Redis has no script ${text}`);
    return apply({ redis: this, record, issued, values });
  }

  /** Everything is lost, as by a restart without persistence. */
  empty(): void {
    this.#entries.clear();
  }

  get(key: string): string | null {
    return this.#read(key)?.value ?? null;
  }

  /** @param lifetimeMs the key keeps its lifetime without one, and without an old lifetime it never expires */
  set(key: string, value: string, lifetimeMs?: number): void {
    if (lifetimeMs !== undefined && !(Number.isInteger(lifetimeMs) && lifetimeMs > 0))
      throw new Error(`invalid expire time: ${lifetimeMs}`);
    const kept = this.#read(key)?.expiresAt ?? Number.POSITIVE_INFINITY;
    this.#entries.set(key, { value, expiresAt: lifetimeMs === undefined ? kept : this.#now() + lifetimeMs });
  }

  /** -1 for a key that never expires, -2 for none. */
  remainingMs(key: string): number {
    const entry = this.#read(key);
    if (!entry) return -2;
    return entry.expiresAt === Number.POSITIVE_INFINITY ? -1 : entry.expiresAt - this.#now();
  }

  prolong(key: string, lifetimeMs: number): void {
    if (this.remainingMs(key) < lifetimeMs) this.set(key, this.get(key) ?? '', lifetimeMs);
  }

  #read(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    return entry && entry.expiresAt > this.#now() ? entry : undefined;
  }
}
