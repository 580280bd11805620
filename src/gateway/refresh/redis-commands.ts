/** The scripts that Redis runs for the replay store, each of them atomic, and their time limit. */

import type { RedisClient } from 'bun';
import type { Clock } from './clock.ts';
import { CLAIMED, ENDED, RENEWED } from './store.ts';

/** A refresh waits for Redis at most three times, so Redis delays a request by at most a quarter of a second. */
export const COMMAND_TIMEOUT_MS = 80;
const RECORD_PREFIX = 'music-gateway:refresh:';
const ISSUED_PREFIX = 'music-gateway:issued:';

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
  /**
   * Restores a record after an outage: a sign-out always, any other outcome unless another instance has recorded one.
   */
  restore: `${READ}
    if string.sub(ARGV[1], 1, ${ENDED.length}) == '${ENDED}' then
      local ms = math.max(ARGV[2], redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2]))
      redis.call('SET', KEYS[1], ARGV[1], 'PX', ms)
    elseif not r or (${IS_CLAIM} and string.sub(ARGV[1], 1, ${CLAIMED.length}) ~= '${CLAIMED}') then ${WRITE}
    elseif ${IS_ENDED} and string.sub(ARGV[1], 1, ${RENEWED.length}) == '${RENEWED}' then ${PROLONG_ENDED} end
    return r`,
} as const;

export type Script = keyof typeof SCRIPTS;

export function run(
  redis: Pick<RedisClient, 'send'>,
  script: Script,
  key: string,
  values: string[],
): Promise<unknown> {
  return redis.send('EVAL', [SCRIPTS[script], '2', RECORD_PREFIX + key, ISSUED_PREFIX + key, ...values]);
}

/** Rejects when the promise takes longer, but only after replies that have already arrived were processed. */
export async function inTime<Result>(
  promise: Promise<Result>,
  timeoutMs: number,
  clock: Clock,
): Promise<Result> {
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
