import { describe, expect, it } from 'bun:test';
import { totalmem } from 'node:os';
import { Admission } from '../../src/gateway/http/admission/admission.ts';
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
    const limits = { maxInFlightRequests, memoryLimitBytes: CONTAINER_BYTES, traces: undefined };
    expect(defaultStreamedBodies(limits)).toBe(bodies);
    const promised = promisedBytes({ ...limits, maxStreamedBodies: bodies });
    expect(promised).toBeLessThanOrEqual(CONTAINER_BYTES);
    expect(promised + STREAMED_BODY_BYTES).toBeGreaterThan(CONTAINER_BYTES);
  });

  it('is 8 where nothing is left', () => {
    const limits = { maxInFlightRequests: 4000, memoryLimitBytes: 64 * MiB, traces: undefined };
    expect(defaultStreamedBodies(limits)).toBe(8);
  });

  it('leaves room for traces', () => {
    const limits = { maxInFlightRequests: 4000, memoryLimitBytes: 1024 * MiB };
    const traces = { sampler: 'always_on', share: 1 } as const;
    const maxStreamedBodies = defaultStreamedBodies({ ...limits, traces });
    expect(maxStreamedBodies).toBe(328);
    const promised = promisedBytes({ ...limits, maxStreamedBodies, traces: undefined });
    expect(promised + 40 * MiB).toBeLessThanOrEqual(1024 * MiB);
    const settings = { ...limits, maxInFlightPerSession: 1, maxStreamedBodies, traces };
    expect(new Admission(settings).promisedBytes).toBe(104 * MiB);
  });
});

// What it says: limits.test.ts.
it('memoryWarning() is undefined when the memory is just enough', () => {
  const limits = { maxInFlightRequests: 4000, maxStreamedBodies: 17, traces: undefined };
  const promised = Math.ceil(promisedBytes({ ...limits, memoryLimitBytes: CONTAINER_BYTES }));
  expect(memoryWarning({ ...limits, memoryLimitBytes: promised })).toBeUndefined();
});
