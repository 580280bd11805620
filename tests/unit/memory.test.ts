import { describe, expect, it } from 'bun:test';
import { totalmem } from 'node:os';
import {
  defaultStreamedBodies,
  memoryLimitBytes,
  memoryWarning,
  promisedBytes,
  requestBodyBudgetBytes,
  STREAMED_BODY_BYTES,
} from '../../src/gateway/settings/memory.ts';

const MiB = 1024 ** 2;
const CONTAINER_BYTES = 256 * MiB;

describe('memoryLimitBytes()', () => {
  it('is more than the process uses, and no more than the machine has', () => {
    expect(memoryLimitBytes()).toBeGreaterThan(process.memoryUsage.rss());
    expect(memoryLimitBytes()).toBeLessThanOrEqual(totalmem());
  });
});

describe('requestBodyBudgetBytes()', () => {
  it('is a quarter of the memory, and 64 MiB at most', () => {
    expect(requestBodyBudgetBytes(128 * MiB)).toBe(32 * MiB);
    expect(requestBodyBudgetBytes(256 * MiB)).toBe(64 * MiB);
    expect(requestBodyBudgetBytes(1024 * MiB)).toBe(64 * MiB);
  });
});

describe('defaultStreamedBodies()', () => {
  it.each([
    [4000, 17],
    [1, 44],
    [2000, 31],
  ])('is what fits into 256 MiB beside %d requests in flight', (maxInFlightRequests, bodies) => {
    expect(defaultStreamedBodies(maxInFlightRequests, CONTAINER_BYTES)).toBe(bodies);
    const limits = { maxInFlightRequests, memoryLimitBytes: CONTAINER_BYTES };
    const promised = promisedBytes({ ...limits, maxStreamedBodies: bodies });
    expect(promised).toBeLessThanOrEqual(CONTAINER_BYTES);
    expect(promised + STREAMED_BODY_BYTES).toBeGreaterThan(CONTAINER_BYTES);
  });

  it('is 8 where nothing is left', () => {
    expect(defaultStreamedBodies(4000, 64 * MiB)).toBe(8);
  });
});

// What it says: limits.test.ts.
it('memoryWarning() is undefined when the memory is just enough', () => {
  const limits = { maxInFlightRequests: 4000, maxStreamedBodies: 17 };
  const promised = Math.ceil(promisedBytes({ ...limits, memoryLimitBytes: CONTAINER_BYTES }));
  expect(memoryWarning({ ...limits, memoryLimitBytes: promised })).toBeUndefined();
});
