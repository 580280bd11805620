/** The short form of the mixed requests: it asserts what must come of them, never how fast. */

import { describe, expect, it } from 'bun:test';
import { mixedRequests } from './mixed-requests.ts';

describe('mixed requests, some of them cut off by the client', () => {
  it('are answered right, and leave no connection behind', async () => {
    const seed = Math.floor(Math.random() * 1e6);
    console.log(`mixed-requests.test.ts: seed ${seed}`);
    const { figures, problems } = await mixedRequests({
      requests: 2000,
      clients: 32,
      seed,
      upstreamIdleSeconds: 1,
      limitMs: 25_000,
    });
    expect(problems).toEqual([]);
    expect(figures['requests sent']).toBe(2000);
    expect(figures['cut by the client']).toBeGreaterThan(0);
    expect(figures['refreshes upstream']).toBeGreaterThan(0);
    expect(figures['sockets at end']).toBeLessThanOrEqual(figures['sockets at start']);
  }, 30_000);
});
