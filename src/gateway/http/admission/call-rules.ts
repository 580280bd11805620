/** What each kind of call may use, and so which of them is refused first. */

import { READ_AHEAD_BYTES, STREAMED_BODY_BYTES } from '../../settings/memory.ts';

const SIGNED_IN = {
  pool: 'streams',
  /** How much of the pool, and of the ledger, may be in use when a call is admitted. */
  poolShare: 1,
  callShare: 1,
  /** How much of the ledger may be in use when a body is reserved, and how much of it by one session. */
  share: 3 / 4,
  sessionShare: 1 / 4,
  isGeneration: false,
  /** How much of the response can arrive before the gateway knows its head. */
  headBytes: 0,
} as const;

/**
 * The kinds of calls. A response of which Bun has read ahead can still be refused, but not one to a call that has changed
 * something. A generation reserves nothing for its head: it waits for minutes, and continues without its client when
 * there is no memory.
 */
export const CALLS = {
  read: { ...SIGNED_IN, pool: 'reads' },
  // The last 32nd is left for calls, such as a refresh.
  generation: { ...SIGNED_IN, share: 31 / 32, sessionShare: 1 / 16, isGeneration: true },
  head: SIGNED_IN,
  get: { ...SIGNED_IN, headBytes: READ_AHEAD_BYTES },
  change: { ...SIGNED_IN, headBytes: STREAMED_BODY_BYTES },
  // Strangers have no session, so they are refused first.
  public: {
    pool: 'streams',
    poolShare: 3 / 4,
    callShare: 1 / 2,
    share: 1 / 2,
    sessionShare: 1,
    isGeneration: false,
    headBytes: READ_AHEAD_BYTES,
  },
} as const;

export type CallKind = keyof typeof CALLS;
export type CallRules = (typeof CALLS)[CallKind];
