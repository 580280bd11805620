/** `bun run fuzz`: the long form. FUZZ_REQUESTS changes its length; FUZZ_SEED repeats a failure. */

import { fuzz } from './fuzz-run.ts';

const { FUZZ_SEED, FUZZ_REQUESTS } = process.env;
const seed = Number(FUZZ_SEED || Math.floor(Math.random() * 2 ** 30));
const requests = Number(FUZZ_REQUESTS || 200_000);

console.log(`FUZZ_SEED=${seed} FUZZ_REQUESTS=${requests}`);
const start = performance.now();
let reported = start;
const progress = (text: string) => {
  if (performance.now() - reported < 10_000) return;
  reported = performance.now();
  console.log(text);
};
const problem = await fuzz({ seed, requests, progress });
console.log(`${problem ?? 'no findings'}\n${Math.round((performance.now() - start) / 1000)} s`);
process.exit(problem === undefined ? 0 : 1);
