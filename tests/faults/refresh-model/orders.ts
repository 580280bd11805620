/** Two schedulers: random choices, which fast-check shrinks with their plan, and every order of a small plan. */

import fc from 'fast-check';
import { violationsIn } from './checks.ts';
import { type Plan, plans } from './plans.ts';
import { runSchedule } from './schedule.ts';
import type { Scheduler } from './virtual-time.ts';

/** @returns what is wrong with this schedule, and what happened in it; undefined when nothing is */
async function problemIn(scheduler: Scheduler, plan: Plan): Promise<string | undefined> {
  const history = await runSchedule(scheduler, plan);
  const violations = violationsIn(history);
  if (violations.length === 0) return undefined;
  return [...violations, ...history.events, JSON.stringify(plan)].join('\n');
}

/** Taken in turn, modulo how many events there are. */
const choices = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 120, size: 'max' });

/**
 * @param path as fast-check has printed it: only that schedule runs
 * @returns what is wrong with the smallest schedule that was found, and how to run it again; undefined when none was
 */
export async function checkSchedules(seed: number, runs: number, path = ''): Promise<string | undefined> {
  const property = fc.asyncProperty(choices, plans, async (chosen, plan) => {
    const scheduler: Scheduler = (step, events) => (chosen[step % chosen.length] ?? 0) % events;
    const problem = await problemIn(scheduler, plan);
    if (problem !== undefined) throw new Error(problem);
  });
  const details = await fc.check(property, { seed, numRuns: runs, path });
  if (!details.failed) return undefined;
  const again = `MODEL_SEED=${seed} MODEL_PATH=${details.counterexamplePath} bun run model`;
  return `${details.errorInstance}\n${again}`;
}

/**
 * Runs each plan in every order with at most so many preemptions: choices of another event than the first.
 *
 * @returns how many orders it has tried, and what is wrong with the first one that contradicts a check
 */
export async function tryEveryOrder(tried: readonly Plan[], mostPreemptions: number) {
  const left = tried.map((plan) => ({ plan, given: [] as number[], preemptions: 0 }));
  let orders = 0;
  for (let next = left.pop(); next; next = left.pop()) {
    const { plan, given, preemptions } = next;
    orders++;
    /** How many events could have happened at each step. */
    const options: number[] = [];
    const scheduler: Scheduler = (step, events) => {
      options.push(events);
      return given[step] ?? 0;
    };
    const problem = await problemIn(scheduler, plan);
    if (problem !== undefined) return { orders, problem };
    if (preemptions === mostPreemptions) continue;
    for (let step = given.length; step < options.length; step++) {
      const same = Array.from({ length: step }, (_, index) => given[index] ?? 0);
      for (let choice = 1; choice < (options[step] ?? 0); choice++)
        left.push({ plan, given: [...same, choice], preemptions: preemptions + 1 });
    }
  }
  return { orders, problem: undefined };
}
