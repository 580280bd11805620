import { describe, expect, it } from 'bun:test';
import { checkSchedules, tryEveryOrder } from './orders.ts';
import { SMALL_PLANS } from './plans.ts';

/** Fixed, so that the suite is never red by luck; `bun run model` takes another one each time. */
const SEED = 20_261_123;

describe('the coordination of refreshes', () => {
  it('keeps every sentence of checks.ts, whatever order a scheduler chooses', async () => {
    expect(await checkSchedules(SEED, 1000)).toBeUndefined();
  }, 60_000);

  it.each(SMALL_PLANS)(
    'keeps them in every order of %s, with few preemptions',
    async (_, plans, preemptions) => {
      const { problem, orders } = await tryEveryOrder(plans, preemptions);
      expect(problem).toBeUndefined();
      expect(orders).toBeGreaterThanOrEqual(plans.length * (preemptions === 0 ? 1 : 20));
    },
    60_000,
  );
});
