/** The two scripts that Redis runs for the replay store, each of them atomic and for one key. */

import { type Fact, KINDS, type Swapped } from './store.ts';

/** A fact, and how long ago it was written by Redis' own clock. */
export interface Aged extends Fact {
  readonly ageMs: number;
}

/** What sends a command to Redis. */
export interface RedisSender {
  send(command: string, parameters: string[]): Promise<unknown>;
}

const PREFIX = 'music-gateway:';

/** In milliseconds since the epoch. */
const NOW = `local time = redis.call('TIME') local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))`;

/** A value begins with the time at which it was written. */
export const GET = `${NOW} return {now, redis.call('GET', KEYS[1])}`;

/**
 * ARGV: what must be there; what to write; its lifetime in ms; and 1 to write also where nothing is. An empty text stands
 * for nothing. Returns nil when it was written, otherwise the time and what is there.
 */
export const SWAP = `${NOW}
  local value = redis.call('GET', KEYS[1])
  local text = value and string.match(value, '^%d+ (.*)$') or ''
  if text ~= ARGV[1] and (value or ARGV[4] ~= '1') then return {now, value} end
  if ARGV[2] == '' then redis.call('DEL', KEYS[1])
  else redis.call('SET', KEYS[1], now .. ' ' .. ARGV[2], 'PX', ARGV[3]) end
  return nil`;

export async function get(redis: RedisSender, key: string): Promise<Aged | undefined> {
  return agedIn(await redis.send('EVAL', [GET, '1', PREFIX + key]));
}

/** @param isOwn whether to write also where nothing is, because this process remembers a fact that Redis has lost */
export async function swap(
  redis: RedisSender,
  key: string,
  from: Fact | undefined,
  to: Fact | undefined,
  lifetimeMs: number,
  isOwn: boolean,
): Promise<Swapped<Aged>> {
  const values = [textOf(from), textOf(to), String(Math.ceil(lifetimeMs)), isOwn ? '1' : ''];
  const reply = await redis.send('EVAL', [SWAP, '1', PREFIX + key, ...values]);
  return reply === null ? { isWritten: true } : { isWritten: false, before: agedIn(reply) };
}

/** Whether each command of the scripts works, in one round trip: a replica, a full Redis or an ACL refuses only some. */
export async function tryOut(redis: RedisSender, key: string): Promise<boolean> {
  const fact: Fact = { kind: 'issued', detail: '' };
  const write = swap(redis, key, undefined, fact, 1000, false);
  const [, { isWritten }] = await Promise.all([write, swap(redis, key, fact, undefined, 0, false)]);
  return isWritten;
}

function textOf(fact: Fact | undefined): string {
  return fact ? `${fact.kind}:${fact.detail}` : '';
}

function agedIn(reply: unknown): Aged | undefined {
  const [now, value]: unknown[] = Array.isArray(reply) ? reply : [];
  const [, at, name, detail = ''] = /^(\d+) (\w+):(.*)$/s.exec(String(value)) ?? [];
  const kind = KINDS.find((each) => each === name);
  return kind && { kind, detail, ageMs: Number(now) - Number(at) };
}
