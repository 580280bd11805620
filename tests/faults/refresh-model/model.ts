/**
 * The model of the shared refresh: two real instances run in virtual time over models of the network, of Redis and of
 * the upstream. Their clocks and that of Redis differ. Random choices decide what happens and in which order, and
 * checks.ts says what must hold, by the laws of src/gateway/refresh/README.md.
 *
 * `bun run model` tries 100,000 schedules, and every order of small plans with up to three preemptions; MODEL_RUNS and
 * MODEL_PREEMPTIONS change how many. A failure prints the sentence that does not hold, what happened in order, and the
 * plan; that of a random schedule also its seed and path, which as MODEL_SEED and MODEL_PATH run it again.
 *
 * What the checks excuse:
 * - While an instance has no Redis, the instances do not notify each other: a presentation or sign-out may be missed,
 *   and a token may be sent twice. Nobody is rejected or ended without a reason, every request ends in time, and the
 *   very token of a sign-out yields nothing at the instance that has signed it out.
 * - A crash loses leases, presentations that are on their way, and a sign-out that is in flight.
 * - A sign-out is remembered for 348 s. Unless a refresh has issued or spent its token, or is about to spend it, only
 *   its instance remembers it, for its token. Only the first one of a session is judged.
 * - While an instance stands still, its lease ends, and another one may send the same token.
 * - A refresh that the upstream refuses clears the cookies, whatever sign-in without the old cookies came meanwhile: of
 *   that the gateway cannot know. Nobody signs in within 1 s after the cookies were lost.
 * - A renewal is known for 340 s, however long a response with its pair is on its way.
 *
 * What it does not know, and integration/session/replay or unit/replay-store tests: an upstream that gives a pair for a
 * spent token, sealed cookies, an error whose text is late, and a full ledger.
 */

import fc from 'fast-check';
import { violationsIn } from './checks.ts';
import { type Plan, plans } from './plans.ts';
import { type Process, runSchedule } from './schedule.ts';
import type { Scheduler } from './virtual-time.ts';

/** Which of the events happens next, taken in turn, modulo how many there are. */
const choices = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 120, size: 'max' });

const randomly =
  (chosen: readonly number[]): Scheduler =>
  (step, events) =>
    (chosen[step % chosen.length] ?? 0) % events;

type Change = (process: Process) => void;

/** @returns what is wrong with this schedule, and what happened in it; undefined when nothing is */
async function problemIn(scheduler: Scheduler, plan: Plan, change?: Change): Promise<string | undefined> {
  const history = await runSchedule(scheduler, plan, change);
  const violations = violationsIn(history);
  return violations.length ? [...violations, ...history.events, JSON.stringify(plan)].join('\n') : undefined;
}

/**
 * @param path as fast-check has printed it: only that schedule runs
 * @throws Error with the smallest schedule that was found, what is wrong with it, and its seed and path
 */
export async function checkSchedules(seed: number, runs: number, path = ''): Promise<void> {
  const property = fc.asyncProperty(choices, plans, async (chosen, plan) => {
    const problem = await problemIn(randomly(chosen), plan);
    if (problem !== undefined) throw new Error(problem);
  });
  await fc.assert(property, { seed, numRuns: runs, path, includeErrorInReport: true });
}

/**
 * Runs the plan in every order with at most so many preemptions: choices of another event than the first.
 *
 * @param change of each process, so that there is something to object to
 * @returns how many orders it has tried
 * @throws Error with what is wrong with the first one that contradicts a check
 */
export async function tryEveryOrder(plan: Plan, mostPreemptions: number, change?: Change): Promise<number> {
  /** Which event was chosen at which step; the first one at all others. */
  const left: (readonly (readonly [step: number, choice: number])[])[] = [[]];
  let orders = 0;
  for (let chosen = left.pop(); chosen; chosen = left.pop()) {
    orders++;
    const given = new Map(chosen);
    const from = (chosen.at(-1)?.[0] ?? -1) + 1;
    const next: (readonly [step: number, choice: number])[] = [];
    const scheduler: Scheduler = (step, events) => {
      if (step >= from) for (let choice = 1; choice < events; choice++) next.push([step, choice]);
      return given.get(step) ?? 0;
    };
    const problem = await problemIn(scheduler, plan, change);
    if (problem !== undefined) throw new Error(problem);
    if (chosen.length < mostPreemptions) left.push(...next.map((one) => [...chosen, one]));
  }
  return orders;
}

/** Whether one of these schedules contradicts a sentence that begins so when each process is changed so. */
export async function isContradicted(
  sentence: string,
  change: Change | undefined,
  seed: number,
  runs: number,
): Promise<boolean> {
  for (const [chosen, plan] of fc.sample(fc.tuple(choices, plans), { seed, numRuns: runs })) {
    const violations = violationsIn(await runSchedule(randomly(chosen), plan, change));
    if (violations.some((violation) => violation.startsWith(`not "${sentence}`))) return true;
  }
  return false;
}
