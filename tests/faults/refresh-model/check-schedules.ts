/** Lets fast-check generate schedules, and shrink the first that contradicts a check. */

import fc from 'fast-check';
import { violationsIn } from './checks.ts';
import { plan } from './commands.ts';
import { Facts } from './facts.ts';
import { runSchedule } from './schedule.ts';

/**
 * @param path as fast-check has printed it: only that schedule runs
 * @returns what is wrong with the smallest schedule that was found, and how to run it again; undefined when none was
 */
export async function checkSchedules(seed: number, runs: number, path = ''): Promise<string | undefined> {
  const property = fc.asyncProperty(fc.scheduler(), plan, async (scheduler, commands) => {
    const history = await runSchedule(scheduler, commands);
    const violations = violationsIn(new Facts(history));
    if (violations.length > 0) throw new Error(`${violations.join('\n')}\n${history.story()}`);
  });
  const result = await fc.check(property, { seed, numRuns: runs, path });
  if (!result.failed) return undefined;
  const { counterexample, counterexamplePath, errorInstance } = result;
  const what = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  const again = `MODEL_SEED=${seed} MODEL_PATH=${counterexamplePath} bun run model`;
  return `${what}\n${JSON.stringify(counterexample?.[1])}\n${again}`;
}
