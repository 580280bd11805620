/** A model of a Redis server: the commands that the gateway sends, in memory, at the caller's time. */

import { compileLua, isTrue, type LuaGlobals, type LuaValue, numberIn, text } from './lua-subset.ts';

interface Entry {
  readonly value: string;
  /** Undefined: never. */
  readonly expiresAt: number | undefined;
}

/** What a client gets: a table is an array, nil and false are null. */
export type RedisReply = string | number | null | readonly RedisReply[];

const compiled = new Map<string, ReturnType<typeof compileLua>>();

function compiledScript(script: string): ReturnType<typeof compileLua> {
  const known = compiled.get(script) ?? compileLua(script);
  compiled.set(script, known);
  return known;
}

export class RedisModel {
  readonly #entries = new Map<string, Entry>();
  readonly #now: () => number;

  /** @param now in whole milliseconds, as Redis counts them */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** @throws as Redis replies with an error */
  command(name: string, parameters: readonly string[]): RedisReply {
    if (name !== 'EVAL') return replyOf(this.#call([name, ...parameters]));
    const [script = '', count = '0', ...rest] = parameters;
    const globals: LuaGlobals = {
      KEYS: rest.slice(0, Number(count)),
      ARGV: rest.slice(Number(count)),
      'redis.call': (called) => this.#call(called),
      'string.sub': ([value, from, to]) => text(value).slice(numberIn(from) - 1, numberIn(to)),
      'math.max': (values) => Math.max(...values.map(numberIn)),
      tonumber: ([value]) => (isNumeric(value) ? numberIn(value) : undefined),
    };
    return replyOf(compiledScript(script)(globals));
  }

  /** Everything is lost, as by a restart without persistence. */
  empty(): void {
    this.#entries.clear();
  }

  #call([name, ...parameters]: readonly LuaValue[]): LuaValue {
    const [key = '', ...values] = parameters.map(text);
    switch (name) {
      case 'GET':
        return this.#read(key)?.value ?? false;
      case 'SET':
        return this.#set(key, values);
      case 'EXISTS':
        return this.#read(key) ? 1 : 0;
      case 'PTTL':
        return this.#remaining(key);
      case 'PEXPIRE':
        return this.#expire(key, integerIn(values[0]));
      default:
        throw new Error(`the model of Redis has no ${name}`);
    }
  }

  #read(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.expiresAt === undefined || entry.expiresAt > this.#now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #set(key: string, [value = '', ...options]: readonly string[]): LuaValue {
    this.#entries.set(key, { value, expiresAt: this.#expiryOf(key, options) });
    return 'OK';
  }

  #expiryOf(key: string, [option, lifetime]: readonly string[]): number | undefined {
    if (option === undefined) return undefined;
    if (option === 'KEEPTTL') return this.#read(key)?.expiresAt;
    if (option !== 'PX') throw new Error(`the model of Redis has no SET with ${option}`);
    const lifetimeMs = integerIn(lifetime);
    if (lifetimeMs <= 0) throw new Error("invalid expire time in 'set' command");
    return this.#now() + lifetimeMs;
  }

  #remaining(key: string): number {
    const entry = this.#read(key);
    if (!entry) return -2;
    return entry.expiresAt === undefined ? -1 : entry.expiresAt - this.#now();
  }

  #expire(key: string, lifetimeMs: number): number {
    const entry = this.#read(key);
    if (!entry) return 0;
    if (lifetimeMs <= 0) this.#entries.delete(key);
    else this.#entries.set(key, { value: entry.value, expiresAt: this.#now() + lifetimeMs });
    return 1;
  }
}

function isNumeric(value: LuaValue): boolean {
  return typeof value === 'number' || (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value));
}

function integerIn(value: string | undefined): number {
  if (value === undefined || !/^-?\d+$/.test(value))
    throw new Error('value is not an integer or out of range');
  return Number(value);
}

/** A table ends at its first nil, and numbers lose their decimals. */
function replyOf(value: LuaValue): RedisReply {
  if (Array.isArray(value)) {
    const end = value.indexOf(undefined);
    return value.slice(0, end < 0 ? value.length : end).map(replyOf);
  }
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Math.trunc(value);
  return isTrue(value) ? 1 : null;
}
