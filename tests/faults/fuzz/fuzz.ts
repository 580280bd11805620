/** `bun run fuzz`: the long form. FUZZ_REQUESTS changes its length; FUZZ_SEED repeats a failure. */

import { fuzz } from './run.ts';

const { FUZZ_SEED, FUZZ_REQUESTS } = process.env;
const seed = Number(FUZZ_SEED || Math.floor(Math.random() * 2 ** 30));
const requests = Number(FUZZ_REQUESTS || 200_000);

console.log(`FUZZ_SEED=${seed} FUZZ_REQUESTS=${requests}`);
let reported = performance.now();
const problem = await fuzz({
  seed,
  requests,
  progress(text) {
    if (performance.now() - reported < 10_000) return;
    reported = performance.now();
    console.log(text);
  },
});
console.log(problem ?? 'no findings');
process.exit(problem === undefined ? 0 : 1);
