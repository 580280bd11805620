import { describe, expect, it } from 'bun:test';
import { IDLE_TIMEOUT_SECONDS, withoutIdleTimeout } from '../../src/gateway/http/idle-timeout.ts';

const request = new Request('http://gateway.test');
const OFF_AND_ON = [0, IDLE_TIMEOUT_SECONDS];

function recordingServer() {
  const timeouts: number[] = [];
  return { timeouts, server: { timeout: (_: Request, seconds: number) => void timeouts.push(seconds) } };
}

describe('withoutIdleTimeout()', () => {
  it.each([
    [55_000, []],
    [55_001, OFF_AND_ON],
    [280_000, OFF_AND_ON],
  ])('for work of %d ms sets the timeouts %j', async (longestMs, expected) => {
    const { timeouts, server } = recordingServer();
    const work = async () => timeouts.length;
    // The timeout is off during the work, and on again before its result leaves.
    expect(await withoutIdleTimeout({ request, server }, longestMs, work)).toBe(expected.length / 2);
    expect(timeouts).toEqual(expected);
  });

  it('switches the timeout on again when the work fails', async () => {
    const { timeouts, server } = recordingServer();
    const work = withoutIdleTimeout({ request, server }, 280_000, () => Promise.reject(new Error('no')));
    await expect(work).rejects.toThrow('no');
    expect(timeouts).toEqual(OFF_AND_ON);
  });

  it('does the work where there is no server', async () => {
    expect(await withoutIdleTimeout({ request, server: null }, 280_000, async () => 'result')).toBe('result');
  });
});
