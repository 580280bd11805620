/** The short form of the slow readers: it asserts what they get, never how fast. */

import { describe, expect, it } from 'bun:test';
import { slowReaders } from './slow-readers.ts';

describe('slow readers of large tracks', () => {
  it('get every byte of them', async () => {
    const { figures, problems } = await slowReaders({
      readers: 20,
      trackBytes: 2_000_000,
      bytesPerSecond: 4_000_000,
      limitMs: 25_000,
    });
    expect(problems).toEqual([]);
    expect(figures['tracks with the right checksum']).toBe(20);
  }, 30_000);
});
