/** Tries every order in which the events of a plan can happen, depth first, on the real code. */

import { violationsIn } from './checks.ts';
import type { Plan } from './commands.ts';
import { Facts } from './facts.ts';
import { runSchedule } from './schedule.ts';
import { NEXT_COMMAND, type Scheduler, TIME_PASSES } from './virtual-time.ts';

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

function rank({ label }: Waiting): number {
  return [NEXT_COMMAND, TIME_PASSES].indexOf(label);
}

/**
 * Runs the plan in every order with at most so many preemptions: choices of another event than the first.
 *
 * @returns how many orders it has tried, and what is wrong with the first one that contradicts a check
 */
export async function tryEveryOrder(plan: Plan, mostPreemptions: number) {
  const left: { readonly choices: readonly number[]; readonly preemptions: number }[] = [
    { choices: [], preemptions: 0 },
  ];
  let orders = 0;
  for (let next = left.pop(); next; next = left.pop()) {
    orders++;
    const order = new ChosenOrder(next.choices);
    const history = await runSchedule(order, plan);
    const violations = violationsIn(new Facts(history));
    if (violations.length > 0)
      return { orders, problem: `${violations.join('\n')}\n${history.story()}\n${JSON.stringify(plan)}` };
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
