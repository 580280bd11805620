import { describe, expect, it } from 'bun:test';
import { IDLE_TIMEOUT_SECONDS, withoutIdleTimeout } from '../../src/gateway/http/idle-timeout.ts';

const request = new Request('http://gateway.test');
const LONG_MS = 280_000;

function recordingServer() {
  const timeouts: number[] = [];
  return { timeouts, server: { timeout: (_: Request, seconds: number) => void timeouts.push(seconds) } };
}

describe('withoutIdleTimeout()', () => {
  it('switches the timeout off for the work, and on again before its result leaves', async () => {
    const { timeouts, server } = recordingServer();
    const result = await withoutIdleTimeout({ request, server }, LONG_MS, async () => {
      expect(timeouts).toEqual([0]);
      return 'result';
    });
    expect(result).toBe('result');
    expect(timeouts).toEqual([0, IDLE_TIMEOUT_SECONDS]);
  });

  it('switches it on again when the work fails', async () => {
    const { timeouts, server } = recordingServer();
    const work = withoutIdleTimeout({ request, server }, LONG_MS, () => Promise.reject(new Error('no')));
    await expect(work).rejects.toThrow('no');
    expect(timeouts).toEqual([0, IDLE_TIMEOUT_SECONDS]);
  });

  it('leaves it as it is for work that is over before it', async () => {
    const { timeouts, server } = recordingServer();
    expect(await withoutIdleTimeout({ request, server }, 55_000, async () => 'result')).toBe('result');
    expect(timeouts).toEqual([]);
    await withoutIdleTimeout({ request, server }, 55_001, async () => 'result');
    expect(timeouts).toEqual([0, IDLE_TIMEOUT_SECONDS]);
  });

  it('does the work where there is no server', async () => {
    expect(await withoutIdleTimeout({ request, server: null }, LONG_MS, async () => 'result')).toBe('result');
  });
});
