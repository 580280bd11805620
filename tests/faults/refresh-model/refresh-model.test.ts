import { describe, expect, it } from 'bun:test';
import { checkSchedules } from './check-schedules.ts';

const RUNS = 300;

describe('the coordination of refreshes, in an order that a scheduler chooses', () => {
  it('keeps every sentence of checks.ts', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.log(`MODEL_SEED=${seed}`);
    expect(await checkSchedules({ seed, runs: RUNS })).toBeUndefined();
  }, 60_000);
});
