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
 *   very token of a sign-out yields nothing at the instance that has signed it out. After 10 s others need not be told.
 * - A crash loses leases, presentations that are on their way, and a sign-out that is in flight.
 * - A sign-out is remembered for 348 s. Only the first one of a session is judged.
 * - While an instance stands still, its lease ends, and another one may send the same token.
 * - A refresh that the upstream refuses clears the cookies, whatever sign-in without the old cookies came meanwhile: of
 *   that the gateway cannot know. Nobody signs in within 1 s after the cookies were lost.
 * - A renewal is known for 340 s, however long a response with its pair is on its way.
 *
 * What it does not know, and integration/session/replay or unit/replay-store tests: an upstream that gives a pair for a
 * spent token, sealed cookies, an error whose text is late, and a full ledger.
 */

import { describe, expect, it } from 'bun:test';
import fc from 'fast-check';
import { BROKEN } from './broken.ts';
import { checksOf, violationsIn } from './checks.ts';
import { History } from './history.ts';
import { type Plan, plans, SMALL_PLANS } from './plans.ts';
import { type Change, runSchedule } from './schedule.ts';
import type { Scheduler } from './virtual-time.ts';

const { MODEL_SEED, MODEL_RUNS, MODEL_PATH = '', MODEL_PREEMPTIONS } = process.env;
/** Another one each time, because what is to be found is rare. A failure prints how to run it again. */
const SEED = Number(MODEL_SEED || Math.floor(Math.random() * 2 ** 31));
const RUNS = Number(MODEL_RUNS || 1500);
const PREEMPTIONS = Number(MODEL_PREEMPTIONS || 2);
/** Always the same, because a broken process may be contradicted by few schedules: the slowest needs some 600. */
const OF_BROKEN = { seed: 20_261_101, numRuns: 1000 };

/** Which of the events happens next, taken in turn, modulo how many there are. */
const choices = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 120, size: 'max' });

const randomly =
  (chosen: readonly number[]): Scheduler =>
  (step, events) =>
    (chosen[step % chosen.length] ?? 0) % events;

/** @throws Error with what is wrong with this schedule, what happened in it, and its plan */
async function check(scheduler: Scheduler, plan: Plan, change?: Change): Promise<void> {
  const history = await runSchedule(scheduler, plan, change);
  const violations = violationsIn(history);
  if (violations.length) throw new Error([...violations, ...history.events, JSON.stringify(plan)].join('\n'));
}

/**
 * Checks the plan in every order with at most so many preemptions: choices of another event than the first.
 *
 * @param given which event is chosen at which step; at all others it is the first one
 * @returns how many orders there are
 */
async function checkEveryOrder(
  plan: Plan,
  preemptions: number,
  change?: Change,
  given: ReadonlyMap<number, number> = new Map(),
): Promise<number> {
  const from = Math.max(-1, ...given.keys()) + 1;
  const next: [step: number, choice: number][] = [];
  const scheduler: Scheduler = (step, events) => {
    if (step >= from) for (let choice = 1; choice < events; choice++) next.push([step, choice]);
    return given.get(step) ?? 0;
  };
  await check(scheduler, plan, change);
  let orders = 1;
  if (preemptions === 0) return orders;
  for (const one of next)
    orders += await checkEveryOrder(plan, preemptions - 1, change, new Map([...given, one]));
  return orders;
}

it(
  `the session layer keeps every sentence of checks.ts in random schedules: MODEL_SEED=${SEED}`,
  async () => {
    const property = fc.asyncProperty(choices, plans, (chosen, plan) => check(randomly(chosen), plan));
    await fc.assert(property, { seed: SEED, numRuns: RUNS, path: MODEL_PATH, includeErrorInReport: true });
  },
  200 * RUNS,
);

it.each(Object.entries(SMALL_PLANS))(
  `it keeps them in every order of %s, with up to ${PREEMPTIONS} preemptions`,
  async (_, plan) => {
    expect(await checkEveryOrder(plan, PREEMPTIONS)).toBeGreaterThan(500);
  },
  100_000 * PREEMPTIONS ** 2,
);

describe.each(Object.entries(BROKEN))('a process that %s', (_, { contradicts, change }) => {
  it(`contradicts "${contradicts}" in some schedule`, async () => {
    const violations: string[] = [];
    const small = Object.values(SMALL_PLANS).map((plan) => [[0], plan] as const);
    for (const [chosen, plan] of [...small, ...fc.sample(fc.tuple(choices, plans), OF_BROKEN)]) {
      violations.push(...violationsIn(await runSchedule(randomly(chosen), plan, change)));
      if (violations.some((each) => each.startsWith(`not "${contradicts}`))) return;
    }
    expect(violations).toContain(contradicts);
  });
  it('contradicts a sentence in an order of a small plan', async () => {
    let outcome = '';
    for (const plan of Object.values(SMALL_PLANS))
      outcome ||= await checkEveryOrder(plan, 1, change).then(() => '', String);
    expect(outcome).toStartWith('Error: not "');
  });
});

it('every sentence is contradicted by one of them', () => {
  const isBroken = (sentence: string) =>
    Object.values(BROKEN).some(({ contradicts }) => sentence.startsWith(contradicts));
  const sentences = Object.keys(checksOf(new History({ now: 0 }, 0)));
  expect(sentences.filter((sentence) => !isBroken(sentence))).toEqual([]);
});
