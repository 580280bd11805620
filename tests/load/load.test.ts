/** The short form of `bun run soak`: it asserts what must happen, never how fast. */

import { describe, expect, it } from 'bun:test';
import { VIRTUAL_MACHINE } from '../deploy/virtual-machine.ts';
import { itWith } from '../support/requirements.ts';
import { runOne, runTwo } from './in-service.ts';
import { type Load, runStreams } from './streams.ts';

describe('the gateway under load', () => {
  it.each<[string, Load]>([
    [
      'delivers every byte of large tracks to slow readers',
      { works: { reader: 20 }, trackBytes: 2_000_000, bytesPerSecond: 4_000_000, checks: 50 },
    ],
    // More than the 256 calls that Bun makes at once by default.
    [
      'checks sessions while 300 generations wait, and gives each its own audio',
      { works: { head: 300 }, checks: 50 },
    ],
    [
      'refuses new connections after SIGTERM, delivers every byte and exits with 0',
      { works: { reader: 7, body: 7, head: 6 }, trackBytes: 16_000_000, terminates: true, checks: 50 },
    ],
  ])('%s', async (_, load) => {
    const { figures, problems } = await runStreams(load);
    expect(problems).toEqual([]);
    const works = Object.values(load.works).reduce((sum, count) => sum + count);
    expect(figures['complete with the right bytes']).toBe(works);
    expect(figures['waiting at once']).toBe(works);
  });
});

describe('a crowd of which some disconnect', () => {
  it('gets the right responses from one instance, and leaves no connection behind', async () => {
    const attendance = { visitor: 12, stranger: 2, author: 3, slowReader: 3, hurried: 8, newcomer: 2 };
    const { figures, problems } = await runOne({ seconds: 9, trackMs: 6000, attendance });
    console.log(figures);
    expect(problems).toEqual([]);
    expect(figures['rounds by kind']).toMatch(/visitor .*stranger .*hurried /);
  });

  itWith(
    VIRTUAL_MACHINE,
    'is not signed out while Redis, the upstream and two instances restart',
    async () => {
      const { figures, problems } = await runTwo({
        ...{ seconds: 20, redisSeconds: 6, upstreamSeconds: 9, upgradeSeconds: 11, trackMs: 12_000 },
        attendance: { visitor: 8, stranger: 1, author: 3, slowReader: 3, hurried: 4, newcomer: 1 },
      });
      console.log(figures);
      expect(problems).toEqual([]);
      expect(figures['signed out']).toBe(0);
    },
    240_000,
  );
});
