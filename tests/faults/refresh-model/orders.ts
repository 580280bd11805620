/** Two schedulers: fast-check, which shrinks the first schedule that contradicts a check, and every order of a plan. */

import fc from 'fast-check';
import { violationsIn } from './checks.ts';
import { Facts } from './facts.ts';
import { type Plan, plan } from './plans.ts';
import { runSchedule } from './schedule.ts';
import { NEXT_COMMAND, type Scheduler, TIME_PASSES } from './virtual-time.ts';

/** @returns what is wrong with this schedule, and what happened in it; undefined when nothing is */
async function problemIn(scheduler: Scheduler, commands: Plan): Promise<string | undefined> {
  const history = await runSchedule(scheduler, commands);
  const violations = violationsIn(new Facts(history));
  return violations.length > 0 ? `${violations.join('\n')}\n${history.story()}` : undefined;
}

/**
 * @param path as fast-check has printed it: only that schedule runs
 * @returns what is wrong with the smallest schedule that was found, and how to run it again; undefined when none was
 */
export async function checkSchedules(seed: number, runs: number, path = ''): Promise<string | undefined> {
  const property = fc.asyncProperty(fc.scheduler(), plan, async (scheduler, commands) => {
    const problem = await problemIn(scheduler, commands);
    if (problem !== undefined) throw new Error(problem);
  });
  const { failed, counterexample, counterexamplePath, errorInstance } = await fc.check(property, {
    ...{ seed, numRuns: runs, path },
  });
  if (!failed) return undefined;
  const again = `MODEL_SEED=${seed} MODEL_PATH=${counterexamplePath} bun run model`;
  return `${errorInstance}\n${JSON.stringify(counterexample?.[1])}\n${again}`;
}

/**
 * Runs the plan in every order with at most so many preemptions: choices of another event than the first.
 *
 * @returns how many orders it has tried, and what is wrong with the first one that contradicts a check
 */
export async function tryEveryOrder(commands: Plan, mostPreemptions: number) {
  const left: { readonly choices: readonly number[]; readonly preemptions: number }[] = [];
  left.push({ choices: [], preemptions: 0 });
  let orders = 0;
  for (let next = left.pop(); next; next = left.pop()) {
    orders++;
    const order = new ChosenOrder(next.choices);
    const problem = await problemIn(order, commands);
    if (problem !== undefined) return { orders, problem: `${problem}\n${JSON.stringify(commands)}` };
    if (next.preemptions >= mostPreemptions) continue;
    for (let step = next.choices.length; step < order.choices.length; step++) {
      for (let choice = 1; choice < (order.options[step] ?? 0); choice++) {
        const choices = [...order.choices.slice(0, step), choice];
        left.push({ choices, preemptions: next.preemptions + 1 });
      }
    }
  }
  return { orders, problem: undefined };
}

interface Waiting {
  readonly label: string;
  readonly happen: () => void;
}

/**
 * Takes the choices that it is given, then always the first event. The events are in the order in which they began to
 * wait; the next command comes after them, and the passing of time comes last. So without a preemption each command
 * is carried out before the next one begins.
 */
class ChosenOrder implements Scheduler {
  readonly #given: readonly number[];
  #waiting: Waiting[] = [];
  readonly choices: number[] = [];
  /** How many events could have happened at each step. */
  readonly options: number[] = [];

  constructor(given: readonly number[]) {
    this.#given = given;
  }

  count(): number {
    return this.#waiting.length;
  }

  schedule(task: Promise<void>, label: string): Promise<void> {
    return new Promise((happen) => void this.#waiting.push({ label, happen: () => happen(task) }));
  }

  async waitOne(): Promise<void> {
    const rank = ({ label }: Waiting) => [NEXT_COMMAND, TIME_PASSES].indexOf(label);
    const events = this.#waiting.toSorted((one, other) => rank(one) - rank(other));
    const choice = this.#given[this.choices.length] ?? 0;
    const event = events[choice];
    if (!event) throw new Error('a given choice does not exist: the schedule is not deterministic');
    this.options.push(events.length);
    this.choices.push(choice);
    this.#waiting = this.#waiting.filter((other) => other !== event);
    event.happen();
  }
}
