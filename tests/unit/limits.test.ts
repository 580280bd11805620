import { describe, expect, it } from 'bun:test';
import { limitWarnings, openFilesLimit } from '../../src/gateway/settings/process-limits.ts';

const MiB = 1024 ** 2;
/** 5,650 calls with those of the short kinds: 11,500 open files. */
const SETTINGS = {
  maxInFlightRequests: 4000,
  memoryLimitBytes: 1024 * MiB,
  traceShare: undefined,
};
const ENOUGH = { BUN_CONFIG_MAX_HTTP_REQUESTS: '5650' };

describe('limitWarnings()', () => {
  it('says nothing when the limits are just high enough', () => {
    expect(limitWarnings(SETTINGS, ENOUGH, 11_500)).toEqual([]);
    expect(limitWarnings(SETTINGS, ENOUGH, Number.POSITIVE_INFINITY)).toEqual([]);
  });

  it('says that the file limit is too low, and what is needed', () => {
    expect(limitWarnings(SETTINGS, ENOUGH, 11_499)).toEqual([
      'the limit of 11499 open files is too low for MAX_IN_FLIGHT_REQUESTS, which needs 11500',
    ]);
  });

  it.each([
    [{}, '256'],
    [{ BUN_CONFIG_MAX_HTTP_REQUESTS: '' }, '256'],
    [{ BUN_CONFIG_MAX_HTTP_REQUESTS: '5649' }, '5649'],
  ])('says that the fetch limit is lower than all pools together: %j', (environment, limit) => {
    expect(limitWarnings(SETTINGS, environment, 11_500)).toEqual([
      `BUN_CONFIG_MAX_HTTP_REQUESTS is ${limit}, less than the 5650 calls that may be in flight with ` +
        'MAX_IN_FLIGHT_REQUESTS (4000); start with "bun run start"',
    ]);
  });

  it('says that there is less memory than the process needs', () => {
    const warningsWith = (memoryLimitBytes: number) =>
      limitWarnings({ ...SETTINGS, memoryLimitBytes }, ENOUGH, 11_500);
    expect(warningsWith(104 * MiB)).toEqual([]);
    expect(warningsWith(103 * MiB)).toEqual(['the process may use 103 MiB of memory, and needs 104 MiB']);
  });

  it('says everything at once', () => {
    expect(limitWarnings({ ...SETTINGS, memoryLimitBytes: MiB }, {}, 1024)).toHaveLength(3);
  });
});

describe('openFilesLimit()', () => {
  it('is what the system gives this process', async () => {
    const shell = Bun.spawn(['sh', '-c', 'ulimit -n'], { stdout: 'pipe' });
    const text = (await shell.stdout.text()).trim();
    if (text !== 'unlimited') expect(openFilesLimit()).toBe(Number(text));
  });
});
