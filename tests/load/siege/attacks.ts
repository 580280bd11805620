/** What has killed a gateway in 256 MB, or has denied it to others, with users beside who must be served. */

import type { Load } from '../streams.ts';

const USERS = { paid: 5 };
const BESIDE = { newcomers: USERS, seconds: 1 };

export const ATTACKS: Readonly<Record<string, Omit<Load, 'memoryMb'>>> = {
  'strangers stop in a hundred public tracks': {
    works: { publicPlayer: 100 },
    ...BESIDE,
    trackBytes: 10_000_000,
  },
  'users stop in thirty generations that are made already': {
    works: { deadGeneration: 30 },
    ...BESIDE,
    trackBytes: 10_000_000,
  },
  'a user with six sign-ins stops 494 players, and reads on in all at once': {
    works: { sixfoldPlayer: 494 },
    ...BESIDE,
    trackBytes: 3_000_000,
  },
  'large sign-ins are completed together': {
    works: { largeBody: 22 },
    ...BESIDE,
  },
  'calls with long heads wait': {
    works: { longHead: 3000 },
    ...BESIDE,
  },
  'two hundred of them hear generations while they are made': {
    works: { heardBriefly: 200 },
    seconds: 0,
    trackBytes: 100_000,
  },
  'four thousand tabs check their sessions at once': { works: { check: 4000 }, seconds: 0, atOnce: 4000 },
};

/** Those that take longer, for `bun run soak`. */
export const LONG_ATTACKS = {
  /** A thousand players of a thousand users have full buffers, and read on at once. */
  'thousand-players': {
    works: { player: 1000 },
    ...BESIDE,
    trackBytes: 3_000_000,
  },
  /** Beside strangers who listen, generations that are made already begin at the same moment. */
  'dead-generations': {
    works: { publicPlayer: 458, deadGeneration: 27 },
    ...BESIDE,
    trackBytes: 3_000_000,
  },
  /** Strangers listen, send bodies in tiny chunks, and then all read on. */
  'tiny-chunks': {
    works: { publicPlayer: 358, chunkedBody: 28 },
    ...BESIDE,
    trackBytes: 3_000_000,
  },
  /** A user with ten sign-ins takes all that there is. */
  'ten-sign-ins': {
    works: { tenfoldPlayer: 535, tenfoldGeneration: 18, stalledBody: 383, refresh: 351 },
    ...BESIDE,
    trackBytes: 3_000_000,
  },
} as const satisfies Readonly<Record<string, Omit<Load, 'memoryMb'>>>;

/** All of them, for a minute. */
export const ALL_AT_ONCE: Omit<Load, 'memoryMb'> = {
  works: {
    publicPlayer: 458,
    deadGeneration: 27,
    sixfoldPlayer: 494,
    player: 1000,
    chunkedBody: 28,
    tenfoldPlayer: 535,
    tenfoldGeneration: 18,
    stalledBody: 383,
    refresh: 351,
    largeBody: 22,
    longHead: 1000,
  },
  newcomers: USERS,
  seconds: 60,
  trackBytes: 3_000_000,
};
