/** The short form of `bun run soak --minutes=60`. */

import { describe, expect } from 'bun:test';
import { itWith } from '../../support/requirements.ts';
import { VIRTUAL_MACHINE } from '../../support/virtual-machine.ts';
import { longRun } from './long-run.ts';

describe('two instances in service', () => {
  const name = 'sign nobody out while Redis, the upstream and both of them restart';
  const test = async () => {
    const { figures, problems } = await longRun({
      durationMs: 40_000,
      redisEveryMs: 12_000,
      upstreamEveryMs: 17_000,
      upgradesEveryMs: 25_000,
      sampleEveryMs: 1000,
      attendance: { visitors: 8, authors: 3, slowReaders: 3, hurried: 4, newcomers: 1, longTrackMs: 12_000 },
    });
    console.log(figures);
    expect(problems).toEqual([]);
    expect(figures['signed out']).toBe(0);
  };
  itWith(VIRTUAL_MACHINE, name, test, 240_000);
});
