/** `bun run fuzz`: the long form. FUZZ_SEED, FUZZ_REQUESTS, FUZZ_CONNECTIONS and FUZZ_FROM change what it does. */

import { fuzz } from './fuzz-run.ts';

const number = (name: string, fallback: number) => Number(process.env[name] || fallback);

const seed = number('FUZZ_SEED', Math.floor(Math.random() * 2 ** 31));
const requests = number('FUZZ_REQUESTS', 200_000);
const connections = number('FUZZ_CONNECTIONS', 64);
const from = number('FUZZ_FROM', 0);
console.log(`FUZZ_SEED=${seed} FUZZ_REQUESTS=${requests} FUZZ_CONNECTIONS=${connections} FUZZ_FROM=${from}`);

const start = performance.now();
const { findings, figures } = await fuzz({ seed, requests, connections, from, progress: console.log });
console.log(figures);
console.log(`${findings.length} findings in ${Math.round((performance.now() - start) / 1000)} s`);
for (const [index, finding] of findings.entries()) console.error(`finding ${index + 1}: ${finding}`);
process.exit(findings.length ? 1 : 0);
