/**
 * `bun run model`: the long form. MODEL_SEED, MODEL_RUNS and MODEL_PATH change the random schedules, and
 * MODEL_PREEMPTIONS the orders that are tried.
 */

import { checkSchedules, tryEveryOrder } from './orders.ts';
import { FULL_PLANS, LATE_PLANS, TINY_PLANS } from './plans.ts';

const number = (name: string, fallback: number) => Number(process.env[name] || fallback);
const seconds = () => Math.round(performance.now() / 1000);

function end(problem: string | undefined): void {
  if (problem === undefined) return;
  console.log(problem);
  process.exit(1);
}

const path = process.env['MODEL_PATH'];
const seed = number('MODEL_SEED', Math.floor(Math.random() * 2 ** 31));
const runs = number('MODEL_RUNS', 100_000);
console.log(`MODEL_SEED=${seed} MODEL_RUNS=${runs}`);
end(await checkSchedules(seed, runs, path));
console.log(`${runs} random schedules in ${seconds()} s`);
if (path !== undefined) process.exit();

const most = number('MODEL_PREEMPTIONS', 3);
for (const [name, plans, preemptions] of [
  ['tiny', TINY_PLANS, most],
  ['late', LATE_PLANS, most - 1],
  ['full', FULL_PLANS, most - 2],
] as const) {
  let orders = 0;
  for (const plan of plans) {
    const tried = await tryEveryOrder(plan, preemptions);
    orders += tried.orders;
    end(tried.problem);
  }
  const kind = `${plans.length} ${name} plans with up to ${preemptions} preemptions`;
  console.log(`every order of ${kind}: ${orders} schedules; ${seconds()} s`);
}
process.exit();
