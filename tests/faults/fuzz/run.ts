/** How much is fuzzed, and how a run is repeated. */

import fc from 'fast-check';

const { FUZZ_SEED, FUZZ_REQUESTS, FUZZ_PATH = '' } = process.env;
export const REQUESTS = Number(FUZZ_REQUESTS || 6000);
export const SEED = Number(FUZZ_SEED || Math.floor(Math.random() * 2 ** 30));

/**
 * @param longestMs after which the run fails, before the test is over, so that what was found is printed: shrinking ends
 *   then, and a run that has found nothing has not sent all it should
 */
export function assertEach<Values>(
  property: fc.IAsyncPropertyWithHooks<Values>,
  numRuns: number,
  longestMs: number,
): Promise<void> {
  return fc.assert(property, {
    seed: SEED,
    path: FUZZ_PATH,
    numRuns,
    unbiased: true,
    interruptAfterTimeLimit: longestMs,
    markInterruptAsFailure: true,
    includeErrorInReport: true,
  });
}
