/** What has killed a gateway in 256 MB, or has denied it to others, with users beside who must be served. */

import type { Load } from '../streams.ts';
import type { Works } from '../works.ts';

/** Users come after so many seconds. */
function attack(works: Works, trackBytes = 3_000_000, seconds = 1): Load {
  return { works, newcomers: { paid: 5 }, seconds, trackBytes, memoryMb: 256 };
}

export const ATTACKS: Readonly<Record<string, Load>> = {
  'strangers stop in a hundred public tracks': attack({ publicPlayer: 100 }, 10_000_000),
  'users stop in thirty generations that are made already': attack({ deadGeneration: 30 }, 10_000_000),
  'a user with six sign-ins stops 494 players, and reads on in all at once': attack({ sixfoldPlayer: 494 }),
  'large sign-ins are completed together': attack({ largeBody: 22 }),
  'calls with long heads wait': attack({ longHead: 3000 }),
  'two hundred of them hear generations while they are made': {
    works: { heardBriefly: 200 },
    seconds: 0,
    trackBytes: 100_000,
    memoryMb: 256,
  },
  'four thousand tabs check their sessions at once': {
    works: { check: 4000 },
    seconds: 0,
    atOnce: 4000,
    memoryMb: 256,
  },
};

const DEAD_GENERATIONS: Works = { publicPlayer: 458, deadGeneration: 27 };
const TEN_SIGN_INS: Works = { tenfoldPlayer: 535, tenfoldGeneration: 18, stalledBody: 383, refresh: 351 };
const ALL: Works = {
  ...{ ...DEAD_GENERATIONS, ...TEN_SIGN_INS },
  ...{ sixfoldPlayer: 494, player: 1000, chunkedBody: 28, largeBody: 22, longHead: 1000 },
};

/** Those that take longer, for `bun run soak`. */
export const LONG_ATTACKS: Readonly<Record<string, Load>> = {
  /** A thousand players of a thousand users have full buffers, and read on at once. */
  'thousand-players': attack({ player: 1000 }),
  /** Beside strangers who listen, generations that are made already begin at the same moment. */
  'dead-generations': attack(DEAD_GENERATIONS),
  /** Strangers listen, send bodies in tiny chunks, and then all read on. */
  'tiny-chunks': attack({ publicPlayer: 358, chunkedBody: 28 }),
  /** A user with ten sign-ins takes all that there is. */
  'ten-sign-ins': attack(TEN_SIGN_INS),
  'all-attacks': attack(ALL, 3_000_000, 60),
};
