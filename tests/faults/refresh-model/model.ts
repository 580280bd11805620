/** `bun run model`: the long form. MODEL_SEED, MODEL_RUNS, MODEL_PATH and MODEL_PREEMPTIONS change what it tries. */

import { checkSchedules, tryEveryOrder } from './orders.ts';
import { SMALL_PLANS } from './plans.ts';

const number = (name: string, fallback: number) => Number(process.env[name] || fallback);

function report(problem: string | undefined, what: string): void {
  console.log(problem ?? `${what}; ${Math.round(performance.now() / 1000)} s`);
  if (problem !== undefined) process.exit(1);
}

const path = process.env['MODEL_PATH'];
const seed = number('MODEL_SEED', Math.floor(Math.random() * 2 ** 31));
const runs = number('MODEL_RUNS', 100_000);
console.log(`MODEL_SEED=${seed} MODEL_RUNS=${runs}`);
report(await checkSchedules(seed, runs, path), `${runs} random schedules`);
if (path !== undefined) process.exit();

const more = number('MODEL_PREEMPTIONS', 3) - 1;
for (const [name, plans, fewest] of SMALL_PLANS) {
  const preemptions = fewest + more;
  const { orders, problem } = await tryEveryOrder(plans, preemptions);
  const kind = `${plans.length} plans of ${name} with up to ${preemptions} preemptions`;
  report(problem, `every order of ${kind}: ${orders} schedules`);
}
process.exit();
