/**
 * The model of the shared refresh: two real instances run in virtual time over models of the network, of Redis and of
 * the upstream. Their clocks and that of Redis differ. Random choices decide what happens and in which order, and
 * checks.ts says what must hold, by the laws of src/gateway/refresh/README.md.
 *
 * `bun run model` tries 100,000 schedules; MODEL_RUNS changes how many. A failure prints the sentence that does not
 * hold, what happened in order, the plan, and the MODEL_SEED and MODEL_PATH that run the schedule again.
 *
 * What the checks excuse:
 * - While an instance has no Redis, the instances do not notify each other: a presentation or sign-out may be missed,
 *   and a token may be sent twice. Nobody is rejected or ended without a reason, every request ends in time, and the
 *   very token of a sign-out yields nothing at the instance that has signed it out.
 * - A crash loses leases, presentations that are on their way, and a sign-out that is in flight.
 * - A sign-out is remembered for 348 s when a refresh has issued or spent its token, or is about to spend it. Any other
 *   is remembered by its instance, for its token, for 30 s. Only the first one of a session is judged.
 */

import fc from 'fast-check';
import { violationsIn } from './checks.ts';
import { type Plan, plans } from './plans.ts';
import { type Process, runSchedule } from './schedule.ts';

/** Which of the events happens next, taken in turn, modulo how many there are. */
const choices = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 120, size: 'max' });

async function run(chosen: readonly number[], plan: Plan, change?: (process: Process) => void) {
  const scheduler = (step: number, events: number) => (chosen[step % chosen.length] ?? 0) % events;
  const history = await runSchedule(scheduler, plan, change);
  return { events: history.events, violations: violationsIn(history) };
}

/**
 * @param path as fast-check has printed it: only that schedule runs
 * @returns what is wrong with the smallest schedule that was found, and how to run it again; undefined when none was
 */
export async function checkSchedules(seed: number, runs: number, path = ''): Promise<string | undefined> {
  const property = fc.asyncProperty(choices, plans, async (chosen, plan) => {
    const { violations, events } = await run(chosen, plan);
    if (violations.length) throw new Error([...violations, ...events, JSON.stringify(plan)].join('\n'));
  });
  const details = await fc.check(property, { seed, numRuns: runs, path });
  if (!details.failed) return undefined;
  const again = `MODEL_SEED=${seed} MODEL_PATH=${details.counterexamplePath} bun run model`;
  return `${details.errorInstance}\n${again}`;
}

/** Whether one of these schedules contradicts the sentence when each process is changed so. */
export async function isContradicted(
  sentence: string,
  change: ((process: Process) => void) | undefined,
  seed: number,
  runs: number,
): Promise<boolean> {
  for (const [chosen, plan] of fc.sample(fc.tuple(choices, plans), { seed, numRuns: runs })) {
    const { violations } = await run(chosen, plan, change);
    if (violations.some((violation) => violation.startsWith(`not "${sentence}"`))) return true;
  }
  return false;
}

if (import.meta.main) {
  const { MODEL_SEED, MODEL_RUNS, MODEL_PATH } = process.env;
  const seed = Number(MODEL_SEED || Math.floor(Math.random() * 2 ** 31));
  const runs = Number(MODEL_RUNS || 100_000);
  console.log(`MODEL_SEED=${seed} MODEL_RUNS=${runs}`);
  const problem = await checkSchedules(seed, runs, MODEL_PATH);
  console.log(problem ?? `no findings in ${Math.round(performance.now() / 1000)} s`);
  process.exit(problem === undefined ? 0 : 1);
}
