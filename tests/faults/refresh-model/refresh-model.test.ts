import { describe, expect, it } from 'bun:test';
import { checkSchedules, tryEveryOrder } from './orders.ts';
import { FULL_PLANS, LATE_PLANS, type Plan, TINY_PLANS } from './plans.ts';

const RUNS = 300;
/** Fixed, so that the suite is never red by luck; `bun run model` takes another one each time. */
const SEED = 20_261_123;

describe('the coordination of refreshes', () => {
  it('keeps every sentence of checks.ts, whatever order a scheduler chooses', async () => {
    expect(await checkSchedules(SEED, RUNS)).toBeUndefined();
  }, 60_000);

  it.each<[string, readonly Plan[], preemptions: number]>([
    ['two requests, and with one event', TINY_PLANS, 1],
    ['what depends on time', LATE_PLANS, 1],
    ['two requests with a sign-out, a crash and an outage', FULL_PLANS, 0],
  ])(
    'keeps them in every order of %s, with few preemptions',
    async (_, plans, preemptions) => {
      let orders = 0;
      for (const plan of plans) {
        const tried = await tryEveryOrder(plan, preemptions);
        expect(tried.problem).toBeUndefined();
        orders += tried.orders;
      }
      expect(orders).toBeGreaterThanOrEqual(plans.length * (preemptions === 0 ? 1 : 20));
    },
    60_000,
  );
});
