import { describe, expect, it } from 'bun:test';
import { totalmem } from 'node:os';
import { ledgerBytes, memoryLimitBytes } from '../../src/gateway/settings/memory.ts';

const MiB = 1024 ** 2;

describe('memoryLimitBytes()', () => {
  it('is more than the process uses, and no more than the machine has', () => {
    expect(memoryLimitBytes()).toBeGreaterThan(process.memoryUsage.rss());
    expect(memoryLimitBytes()).toBeLessThanOrEqual(totalmem());
  });
});

describe('ledgerBytes()', () => {
  it.each([
    ['what the process leaves', 256, undefined, 192],
    ['what the process and its traces leave', 256, 0, 152],
    ['40 MiB where less is left', 64, undefined, 40],
  ])('is %s', (_, limit, traceShare, ledger) => {
    expect(ledgerBytes({ memoryLimitBytes: limit * MiB, traceShare })).toBe(ledger * MiB);
  });
});
