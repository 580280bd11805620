import { describe, expect, it } from 'bun:test';
import { limitWarnings, openFilesLimit } from '../../src/gateway/settings/process-limits.ts';

const GiB = 1024 ** 3;
/** 5,500 calls with those of the short kinds: 11,200 open files. */
const SETTINGS = {
  maxInFlightRequests: 4000,
  maxStreamedBodies: 20,
  memoryLimitBytes: GiB,
  traces: undefined,
};
const ENOUGH = { BUN_CONFIG_MAX_HTTP_REQUESTS: '5500' };

describe('limitWarnings()', () => {
  it('says nothing when the limits are just high enough', () => {
    expect(limitWarnings(SETTINGS, ENOUGH, 11_200)).toEqual([]);
    expect(limitWarnings(SETTINGS, ENOUGH, undefined)).toEqual([]);
  });

  it('says that the file limit is too low, and what is needed', () => {
    expect(limitWarnings(SETTINGS, ENOUGH, 11_199)).toEqual([
      'the limit of 11199 open files is too low for MAX_IN_FLIGHT_REQUESTS, which needs 11200',
    ]);
  });

  it.each([
    [{}, '256'],
    [{ BUN_CONFIG_MAX_HTTP_REQUESTS: '' }, '256'],
    [{ BUN_CONFIG_MAX_HTTP_REQUESTS: '5499' }, '5499'],
  ])('says that the fetch limit is lower than all pools together: %j', (environment, limit) => {
    expect(limitWarnings(SETTINGS, environment, 11_200)).toEqual([
      `BUN_CONFIG_MAX_HTTP_REQUESTS is ${limit}, less than the 5500 calls that may be in flight with ` +
        'MAX_IN_FLIGHT_REQUESTS (4000); start with "bun run start"',
    ]);
  });

  it('says that the settings promise more memory than there is', () => {
    const settings = { ...SETTINGS, maxStreamedBodies: 1000 };
    expect(limitWarnings(settings, ENOUGH, 11_200)).toEqual([
      'MAX_IN_FLIGHT_REQUESTS (4000) and MAX_STREAMED_BODIES (1000) promise 2558 MiB, and the process may use 1024 MiB',
    ]);
  });

  it('says everything at once', () => {
    expect(limitWarnings({ ...SETTINGS, maxStreamedBodies: 1000 }, {}, 1024)).toHaveLength(3);
  });
});

describe('openFilesLimit()', () => {
  it('is what the system gives this process', async () => {
    const shell = Bun.spawn(['sh', '-c', 'ulimit -n'], { stdout: 'pipe' });
    const text = (await shell.stdout.text()).trim();
    if (text !== 'unlimited') expect(openFilesLimit()).toBe(Number(text));
  });
});
