import { describe, expect, it } from 'bun:test';
import { BROKEN } from './broken.ts';
import { checksOf } from './checks.ts';
import { History } from './history.ts';
import { checkSchedules, isContradicted, tryEveryOrder } from './model.ts';
import { SMALL_PLANS } from './small-plans.ts';

const { MODEL_SEED, MODEL_RUNS, MODEL_PATH, MODEL_PREEMPTIONS } = process.env;
/** Another one each time, because what is to be found is rare. A failure prints how to run it again. */
const SEED = Number(MODEL_SEED || Math.floor(Math.random() * 2 ** 31));
const RUNS = Number(MODEL_RUNS || 1500);
const PREEMPTIONS = Number(MODEL_PREEMPTIONS || 2);
/** Always the same, because a broken process may be contradicted by few schedules. */
const SEED_OF_BROKEN = 20_261_101;
/** With this seed the slowest needs some 600. */
const RUNS_OF_BROKEN = 1000;

it(
  `the session layer keeps every sentence of checks.ts in random schedules: MODEL_SEED=${SEED}`,
  async () => {
    await checkSchedules(SEED, RUNS, MODEL_PATH);
  },
  200 * RUNS,
);

it.each(SMALL_PLANS)(
  `it keeps them in every order of %s, with up to ${PREEMPTIONS} preemptions`,
  async (_, plan) => {
    expect(await tryEveryOrder(plan, PREEMPTIONS)).toBeGreaterThan(500);
  },
  100_000 * PREEMPTIONS ** 2,
);

const SHARED = 'two requests and a sign-out';

describe.each(Object.entries(BROKEN))('a process that %s', (_, { contradicts, plan = SHARED, change }) => {
  it(`contradicts "${contradicts}" in some schedule`, async () => {
    expect(await isContradicted(contradicts, change, SEED_OF_BROKEN, RUNS_OF_BROKEN)).toBe(true);
  });
  it(`contradicts a sentence in an order of ${plan}`, async () => {
    const [, small] = SMALL_PLANS.find(([what]) => what === plan) ?? [];
    if (!small) throw new Error(`there is no plan of ${plan}`);
    const found = await tryEveryOrder(small, 1, change).catch(String);
    expect(String(found)).toStartWith('Error: not "');
  });
});

it('every sentence is contradicted by one of them', () => {
  const isBroken = (sentence: string) =>
    Object.values(BROKEN).some(({ contradicts }) => sentence.startsWith(contradicts));
  const sentences = Object.keys(checksOf(new History({ now: 0 }, 0)));
  expect(sentences.filter((sentence) => !isBroken(sentence))).toEqual([]);
});
