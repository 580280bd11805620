/** The short form of the drain: it asserts what must come of it, never how fast. */

import { describe, expect, it } from 'bun:test';
import { drain } from './drain.ts';

describe('SIGTERM while tracks are under way', () => {
  it('refuses new connections, delivers every byte and exits with 0', async () => {
    const { figures, problems } = await drain({
      tracks: 20,
      trackBytes: 16_000_000,
      idle: 3,
      limitMs: 25_000,
    });
    expect(problems).toEqual([]);
    expect(figures['delivered whole']).toBe(20);
    expect(figures['exit code']).toBe(0);
  }, 30_000);
});
