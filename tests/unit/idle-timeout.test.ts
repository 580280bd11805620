import { expect, it } from 'bun:test';
import { IDLE_TIMEOUT_SECONDS, withoutIdleTimeout } from '../../src/gateway/http/idle-timeout.ts';

const request = new Request('http://gateway.test');

// What takes how long: integration/relay/idle-timeout.test.ts.
it.each([
  [55_000, false],
  [55_001, true],
])('the idle timeout during work of %d ms is off: %p', async (longestMs, isOff) => {
  const timeouts: number[] = [];
  const server = { timeout: (_: Request, seconds: number) => void timeouts.push(seconds) };
  const off = isOff ? [0] : [];
  const offAndOn = isOff ? [0, IDLE_TIMEOUT_SECONDS] : [];
  // It is on again before the result leaves, and also when the work fails.
  expect(await withoutIdleTimeout({ request, server }, longestMs, async () => [...timeouts])).toEqual(off);
  expect(timeouts.splice(0)).toEqual(offAndOn);
  const failing = withoutIdleTimeout({ request, server }, longestMs, () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  expect(timeouts).toEqual(offAndOn);
});
