/** `bun run model`: the long form. MODEL_SEED, MODEL_RUNS and MODEL_PATH change what it does. */

import { checkSchedules } from './check-schedules.ts';

const number = (name: string, fallback: number) => Number(process.env[name] || fallback);

const seed = number('MODEL_SEED', Math.floor(Math.random() * 2 ** 31));
const runs = number('MODEL_RUNS', 100_000);
console.log(`MODEL_SEED=${seed} MODEL_RUNS=${runs}`);
const problem = await checkSchedules(seed, runs, process.env['MODEL_PATH']);
console.log(problem ?? `${runs} schedules in ${Math.round(performance.now() / 1000)} s`);
process.exit(problem ? 1 : 0);
