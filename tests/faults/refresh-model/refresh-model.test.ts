import { describe, expect, it } from 'bun:test';
import { checkSchedules } from './check-schedules.ts';

const RUNS = 300;

describe('the coordination of refreshes', () => {
  it('keeps every sentence of checks.ts, whatever order a scheduler chooses', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    console.log(`MODEL_SEED=${seed}`);
    expect(await checkSchedules(seed, RUNS)).toBeUndefined();
  }, 60_000);
});
