/** The short form of `bun run soak`: it asserts what must happen, never how fast. */

import { describe, expect, it } from 'bun:test';
import { VIRTUAL_MACHINE } from '../deploy/virtual-machine.ts';
import { itWith } from '../support/requirements.ts';
import { runOne, runTwo } from './in-service.ts';
import { runStreams } from './streams.ts';
import type { Works } from './works.ts';

describe('the gateway under load', () => {
  it.each<[what: string, Works]>([
    ['delivers every byte of large tracks to readers that have stopped', { reader: 20 }],
    // More than the 256 calls that Bun makes at once by default.
    ['checks sessions while 300 generations wait, and gives each its own audio', { head: 300 }],
  ])('%s', async (_, works) => {
    // It is a problem when one of them does not get all of its own bytes.
    expect((await runStreams({ works, trackBytes: 2_000_000, seconds: 0 })).problems).toEqual([]);
  });
});

describe('a crowd of which some disconnect', () => {
  it('gets the right responses from one instance, and leaves no connection behind', async () => {
    const attendance = { visitor: 12, author: 3, slowReader: 3, hurried: 8 };
    const { figures, problems } = await runOne({ seconds: 4, trackMs: 6000, attendance });
    expect(problems).toEqual([]);
    expect(figures['rounds']).toBeGreaterThan(26);
  });

  const restarts = 'is not signed out while Redis, the upstream and two instances restart';
  itWith(VIRTUAL_MACHINE, restarts, async () => {
    const { problems } = await runTwo({
      ...{ seconds: 8, redisSeconds: 1, upstreamSeconds: 5, upgradeSeconds: 2, trackMs: 6000 },
      attendance: { visitor: 8, author: 3, slowReader: 3, hurried: 4 },
    });
    expect(problems).toEqual([]);
  });
});
