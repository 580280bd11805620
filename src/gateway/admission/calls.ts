/** The kinds of calls: on which rungs of the ladder they and their bodies stand. */

import { LADDER } from './ladder.ts';
import {
  LEAST_READ_AHEAD_BYTES,
  READ_AHEAD_BYTES,
  UNKNOWN_CHANGE_BYTES,
  UNKNOWN_GET_BYTES,
} from './prices.ts';

const USUAL = {
  pool: 'streams',
  /** How much of the pool may be in use when it is admitted. */
  poolShare: 1,
  rung: LADDER.user,
  bodyRung: LADDER.playingUser,
  sliceRung: LADDER.nextSlice,
  isGeneration: false,
  /** Whether its client may be cut off to make room. */
  isExpendable: true,
  /** Whether the head of the request is reserved as well. For others the price of the response covers it. */
  reservesHead: false,
  /** What it costs at an endpoint that has not responded yet. */
  unknownBytes: 0,
} as const;

export const CALLS = {
  read: { ...USUAL, pool: 'reads', rung: LADDER.session, bodyRung: LADDER.session },
  // It waits for minutes, and goes on without its client when there is no memory, so it reserves nothing for its response.
  generation: {
    ...USUAL,
    rung: LADDER.order,
    bodyRung: LADDER.behind,
    isGeneration: true,
    reservesHead: true,
  },
  head: { ...USUAL, unknownBytes: LEAST_READ_AHEAD_BYTES },
  get: { ...USUAL, unknownBytes: UNKNOWN_GET_BYTES },
  // Its response would be lost.
  change: { ...USUAL, bodyRung: LADDER.behind, isExpendable: false, unknownBytes: UNKNOWN_CHANGE_BYTES },
  // Strangers ask for music there, and nothing else.
  public: {
    ...USUAL,
    poolShare: 3 / 4,
    rung: LADDER.guest,
    bodyRung: LADDER.playingGuest,
    sliceRung: LADDER.playingGuest,
    unknownBytes: READ_AHEAD_BYTES,
  },
} as const;

export type CallKind = keyof typeof CALLS;
export type CallRules = (typeof CALLS)[CallKind];
