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

describe('memoryWarning()', () => {
  const limits = { maxInFlightRequests: 4000, maxStreamedBodies: 17 };
  const promised = promisedBytes({ ...limits, memoryLimitBytes: CONTAINER_BYTES });

  it('is undefined when the memory is just enough', () => {
    expect(memoryWarning({ ...limits, memoryLimitBytes: Math.ceil(promised) })).toBeUndefined();
  });

  it('says what is promised, by which settings, and what there is', () => {
    expect(memoryWarning({ ...limits, maxStreamedBodies: 19, memoryLimitBytes: CONTAINER_BYTES })).toBe(
      'MAX_IN_FLIGHT_REQUESTS (4000) and MAX_STREAMED_BODIES (19) promise 258 MiB, and the process may use 256 MiB',
    );
  });
});
