/** The short form of the held generations: it asserts what must come of them, never how fast. */

import { describe, expect, it } from 'bun:test';
import { heldGenerations } from './held-generations.ts';

describe('generations that the upstream holds', () => {
  it('let session checks through, and are each answered with their own audio', async () => {
    // More than the 256 calls that Bun makes at once unless told.
    const { figures, problems } = await heldGenerations({ generations: 300, checks: 50, limitMs: 25_000 });
    expect(problems).toEqual([]);
    expect(figures['answered right']).toBe(300);
  }, 30_000);
});
