/** The fuzzer's short form: one seed that stays, and one that is new each time. */

import { describe, expect, it } from 'bun:test';
import { fuzz } from './fuzz-run.ts';

const FIXED_SEED = 20_260;

describe('the gateway, under requests that nobody would write,', () => {
  it.each([
    ['a fixed seed', FIXED_SEED],
    ['a new seed', Number(process.env['FUZZ_SEED'] || Math.floor(Math.random() * 2 ** 30))],
  ])(
    'lives and keeps its promises: %s (%i)',
    async (_, seed) => {
      console.log(`FUZZ_SEED=${seed}`);
      expect(await fuzz({ seed, requests: 3000 })).toBeUndefined();
    },
    120_000,
  );
});
