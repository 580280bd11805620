import { describe, expect, it } from 'bun:test';
import { limitWarnings, openFilesLimit } from '../../src/limits.ts';

const ENOUGH = { BUN_CONFIG_MAX_HTTP_REQUESTS: '20000' };

describe('limitWarnings()', () => {
  it('says nothing when the limits carry the setting', () => {
    expect(limitWarnings(4000, ENOUGH, 8200)).toEqual([]);
    expect(limitWarnings(4000, ENOUGH, undefined)).toEqual([]);
  });

  it('says that the file limit is too low, and what is needed', () => {
    expect(limitWarnings(4000, ENOUGH, 8199)).toEqual([expect.stringMatching(/8199.*8200/)]);
  });

  it.each([{}, { BUN_CONFIG_MAX_HTTP_REQUESTS: '' }, { BUN_CONFIG_MAX_HTTP_REQUESTS: '3999' }])(
    'says that the fetch limit is too low: %j',
    (environment) => {
      expect(limitWarnings(4000, environment, 8200)).toEqual([
        expect.stringContaining('BUN_CONFIG_MAX_HTTP_REQUESTS'),
      ]);
    },
  );
});

describe('openFilesLimit()', () => {
  it('is what the system gives this process', async () => {
    const shell = Bun.spawn(['sh', '-c', 'ulimit -n'], { stdout: 'pipe' });
    const text = (await shell.stdout.text()).trim();
    if (text !== 'unlimited') expect(openFilesLimit()).toBe(Number(text));
  });
});
