/** The text of a record in Redis, and the scripts that Redis runs on it, each of them atomic. */

import type { RedisClient } from 'bun';
import type { TokenRecord } from './record.ts';

/**
 * Longer than a busy machine stalls, because instances that miss Redis may send the same token twice. When it is over,
 * Redis counts as down.
 */
export const COMMAND_TIMEOUT_MS = 500;
const RECORD_PREFIX = 'music-gateway:refresh:';
const ISSUED_PREFIX = 'music-gateway:issued:';

/** Instances of different versions share Redis, so these texts stay as they are. */
export const CLAIMED = 'claimed:';
export const RENEWED = 'renewed:';
export const ENDED = 'ended:';

export function encodeRecord(record: TokenRecord): string {
  switch (record.kind) {
    case 'claimed':
      return CLAIMED + record.by;
    case 'renewed':
      return RENEWED + record.sealedPair;
    case 'ended':
      return ENDED + record.clearsFrom;
    case 'rejected':
    case 'unreachable':
      return record.kind;
    case 'unreadable':
      return record.text;
  }
}

export function parseRecord(text: string): TokenRecord {
  if (text.startsWith(CLAIMED)) return { kind: 'claimed', by: text.slice(CLAIMED.length) };
  if (text.startsWith(RENEWED)) return { kind: 'renewed', sealedPair: text.slice(RENEWED.length) };
  if (text.startsWith(ENDED)) return { kind: 'ended', clearsFrom: Number(text.slice(ENDED.length)) };
  if (text === 'rejected' || text === 'unreachable') return { kind: text };
  return { kind: 'unreadable', text };
}

/** Reads the current record into `r`. */
const READ = `local r = redis.call('GET', KEYS[1])`;
const WRITE = `redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])`;
const IS_CLAIM = `(r and string.sub(r, 1, ${CLAIMED.length}) == '${CLAIMED}')`;
const IS_ENDED = `(r and string.sub(r, 1, ${ENDED.length}) == '${ENDED}')`;
const IS_RENEWED = `(r and string.sub(r, 1, ${RENEWED.length}) == '${RENEWED}')`;
/** A sign-out must outlast the renewal that it ends and the one that issued its token. */
const PROLONG_ENDED = `if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end`;

/** KEYS: the record, and the mark that the token was issued. ARGV: a record, its lifetime in ms, then as noted. */
const SCRIPTS = {
  /** Returns the record that was there. */
  add: `${READ} if not r then ${WRITE} end return r`,
  /** ARGV[3]: the expected record. Returns the record that was there. */
  replace: `${READ} if r == ARGV[3] then ${WRITE} end return r`,
  get: `${READ} return r`,
  /** ARGV[1]: when the token was first presented; empty if unknown. */
  markIssued: `local presented = redis.call('GET', KEYS[2])
    if not presented or presented == '' then presented = ARGV[1] end
    redis.call('SET', KEYS[2], presented, 'PX', ARGV[2])
    ${READ} if ${IS_ENDED} then ${PROLONG_ENDED} end return r`,
  /** ARGV[1]: when the token was presented. Only the first time is kept. */
  markPresented: `if redis.call('GET', KEYS[2]) == '' then redis.call('SET', KEYS[2], ARGV[1], 'KEEPTTL') end`,
  presentedAt: `return redis.call('GET', KEYS[2])`,
  /**
   * ARGV[2]: the lifetime for a token that has worked; ARGV[3]: for one that is being refreshed, where 0 keeps the
   * claim's lifetime; ARGV[4]: for any other, where 0 writes nothing; ARGV[5]: 1 when the token is known to have
   * worked. Returns the record that was there, and 1 when the token has worked.
   */
  end: `${READ}
    local hasWorked = ARGV[5] == '1' or ${IS_RENEWED} or redis.call('EXISTS', KEYS[2]) == 1
    if ${IS_ENDED} then
      if hasWorked then redis.call('SET', KEYS[1], r, 'PX', ARGV[2]) end
      return {r, hasWorked and 1 or 0}
    end
    if hasWorked then ${WRITE} return {r, 1} end
    local ms = ARGV[4]
    if ${IS_CLAIM} then
      ms = ARGV[3]
      if ms == '0' then redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL') end
    end
    if ms ~= '0' then redis.call('SET', KEYS[1], ARGV[1], 'PX', ms) end
    return {r, 0}`,
  /** Removes a renewal, or the mark of a token that a refresh has issued. */
  evict: `${READ}
    if ARGV[1] == 'issued' then redis.call('DEL', KEYS[2])
    elseif ${IS_RENEWED} then redis.call('DEL', KEYS[1]) end`,
  /**
   * Restores a record after an outage: a sign-out always, anything else unless another instance has recorded more.
   */
  restore: `${READ}
    if string.sub(ARGV[1], 1, ${ENDED.length}) == '${ENDED}' then
      local ms = math.max(ARGV[2], redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2]))
      redis.call('SET', KEYS[1], ARGV[1], 'PX', ms)
    elseif not r or r == 'unreachable' or (${IS_CLAIM} and string.sub(ARGV[1], 1, ${CLAIMED.length}) ~= '${CLAIMED}') then ${WRITE}
    elseif ${IS_ENDED} and string.sub(ARGV[1], 1, ${RENEWED.length}) == '${RENEWED}' then ${PROLONG_ENDED} end
    return r`,
} as const;

export type Script = keyof typeof SCRIPTS;
export type Command = readonly [script: Script, key: string, values: readonly string[]];

export function run(redis: Pick<RedisClient, 'send'>, ...[script, key, values]: Command): Promise<unknown> {
  return redis.send('EVAL', [SCRIPTS[script], '2', RECORD_PREFIX + key, ISSUED_PREFIX + key, ...values]);
}
