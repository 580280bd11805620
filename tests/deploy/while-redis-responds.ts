/** Tests of several instances, which share no refreshes while Redis does not respond in time. */

import { it } from 'bun:test';

/**
 * Runs a test, and again if it fails after an instance has missed Redis, which on a busy machine may have been slow.
 *
 * @param missed how often an instance has missed Redis so far
 */
export function itWhileRedisResponds(
  name: string,
  missed: () => Promise<number>,
  test: () => Promise<void>,
): void {
  const untilRedisResponds = async () => {
    for (;;) {
      const before = await missed();
      try {
        return await test();
      } catch (error) {
        if ((await missed()) === before) throw error;
        console.log(`${name}: Redis was too slow, so the test starts again`);
      }
    }
  };
  it(name, untilRedisResponds, 300_000);
}
