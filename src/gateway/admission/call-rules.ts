/** What each kind of call may use, and so which of them is refused first. */

import { READ_AHEAD_BYTES, STREAMED_BODY_BYTES } from '../settings/memory.ts';
import { BEFORE_CALLS } from './ledger.ts';

const USUAL = {
  pool: 'streams',
  /** How much of the pool may be in use when a call is admitted. */
  poolShare: 1,
  /** How much of the ledger may be in use when a call is admitted: a little more than for its body, so that some wait. */
  callShare: 57 / 64,
  /** How much of the ledger may be in use when a body is reserved, and how much of it by one session. */
  share: 7 / 8,
  sessionShare: 1 / 4,
  isGeneration: false,
  /** Whether sessions depend on it, so that it may use the ledger to its end, whatever the kernel charges. */
  isVital: false,
  /** Whether the head of the request is reserved as well. Others reserve far more than it takes, or end soon. */
  reservesHead: false,
  /** What is reserved before the call, because so much of the response can arrive before the gateway knows its head. */
  readAheadBytes: 0,
} as const;

/**
 * The kinds of calls. A GET reserves only what Bun reads ahead, because the gateway can still refuse the rest. A change
 * reserves the whole body, because the response to it must not be refused. A generation reserves nothing before its
 * response, because it waits for minutes, and continues without its client when there is no memory.
 */
export const CALLS = {
  read: { ...USUAL, pool: 'reads', callShare: 1, share: BEFORE_CALLS, isVital: true },
  // More than other calls and their bodies may use, so that it is admitted when they fill theirs. The rest is for calls
  // that keep sessions alive.
  generation: {
    ...USUAL,
    callShare: BEFORE_CALLS,
    share: 15 / 16,
    sessionShare: 1 / 12,
    isGeneration: true,
    reservesHead: true,
  },
  head: { ...USUAL, reservesHead: true },
  get: { ...USUAL, readAheadBytes: READ_AHEAD_BYTES },
  // It is never cut off to make room, so one session may have fewer.
  change: { ...USUAL, sessionShare: 1 / 8, readAheadBytes: STREAMED_BODY_BYTES },
  // Strangers have no session, so they are refused first.
  public: {
    ...USUAL,
    poolShare: 3 / 4,
    callShare: 25 / 32,
    share: 3 / 4,
    sessionShare: 1,
    readAheadBytes: READ_AHEAD_BYTES,
  },
} as const;

export type CallKind = keyof typeof CALLS;
export type CallRules = (typeof CALLS)[CallKind];
