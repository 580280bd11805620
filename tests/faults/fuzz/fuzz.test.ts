import { it } from 'bun:test';
import { fuzz } from './fuzz.ts';

const { FUZZ_SEED, FUZZ_REQUESTS, FUZZ_PATH } = process.env;
const REQUESTS = Number(FUZZ_REQUESTS || 6000);
/** Always the same in the suite, so that it never fails by luck: `bun run fuzz` draws a new one. */
const SEED = Number(FUZZ_SEED || (FUZZ_REQUESTS ? Math.floor(Math.random() * 2 ** 30) : 20_260));

it(
  `the gateway keeps its promises under requests that nobody would write: FUZZ_SEED=${SEED}`,
  async () => {
    await fuzz(SEED, REQUESTS, FUZZ_PATH);
  },
  20 * REQUESTS,
);
