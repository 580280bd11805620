/** The short form of `bun run soak`: it asserts what must happen, never how fast. */

import { describe, expect, it, setDefaultTimeout } from 'bun:test';
import { inFlight, type Load } from './in-flight.ts';
import { mixedRequests } from './mixed-requests.ts';

setDefaultTimeout(30_000);
const SHORT = { checks: 50, limitMs: 25_000 };

describe('the gateway under load', () => {
  it.each<[string, Load]>([
    [
      'delivers every byte of large tracks to slow readers',
      { ...SHORT, works: 20, kinds: ['reader'], trackBytes: 2_000_000, bytesPerSecond: 4_000_000 },
    ],
    // More than the 256 calls that Bun makes at once by default.
    [
      'checks sessions while 300 generations wait, and gives each its own audio',
      { ...SHORT, works: 300, kinds: ['head'] },
    ],
    [
      'refuses new connections after SIGTERM, delivers every byte and exits with 0',
      { ...SHORT, works: 20, kinds: ['reader', 'body', 'head'], trackBytes: 16_000_000, terminates: true },
    ],
  ])('%s', async (_, load) => {
    const { figures, problems } = await inFlight(load);
    expect(problems).toEqual([]);
    expect(figures['works complete with the right bytes']).toBe(load.works);
  });

  it('responds rightly to mixed requests of which clients cut some, and leaves no connection behind', async () => {
    const seed = Math.floor(Math.random() * 1e6);
    console.log(`soak.test.ts: SOAK_SEED=${seed}`);
    // Bun counts in steps of 4 s, so a shorter idle timeout could close a connection that has just been opened.
    const load = { requests: 2000, clients: 32, seed, upstreamIdleSeconds: 5, limitMs: SHORT.limitMs };
    const { figures, problems } = await mixedRequests(load);
    expect(problems).toEqual([]);
    expect(figures['requests sent']).toBe(2000);
    expect(Number(figures['cut by the client'])).toBeGreaterThan(0);
    expect(Number(figures['refreshes upstream'])).toBeGreaterThan(0);
  });
});
