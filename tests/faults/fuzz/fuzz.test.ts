import { expect, it } from 'bun:test';
import { fuzz } from './fuzz.ts';

/** Always the same, so that the suite never fails by luck: `bun run fuzz` draws a new one. */
const SEED = 20_260;

it('the gateway keeps its promises under requests that nobody would write', async () => {
  expect(await fuzz(SEED, 6000)).toBeUndefined();
}, 120_000);
