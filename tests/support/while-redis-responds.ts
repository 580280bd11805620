/** Tests of several instances, which share no refreshes while Redis does not respond in time. */

import { it } from 'bun:test';

interface Instances extends AsyncDisposable {
  /** Whether one of them has taken Redis to be down; on a busy machine it may have been slow only. */
  missedRedis(): boolean | Promise<boolean>;
}

/** Runs a test with fresh instances, and again if it fails after one of them has missed Redis. */
export function itWhileRedisResponds<Started extends Instances>(
  start: () => Promise<Started>,
  name: string,
  test: (instances: Started) => Promise<void>,
  timeoutMs: number,
): void {
  const untilRedisResponds = async () => {
    for (;;) {
      await using instances = await start();
      try {
        return await test(instances);
      } catch (error) {
        if (!(await instances.missedRedis())) throw error;
        console.log(`${name}: Redis was too slow, so the test starts again`);
      }
    }
  };
  it(name, untilRedisResponds, timeoutMs);
}
