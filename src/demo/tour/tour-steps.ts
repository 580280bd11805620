/** Prints the steps of the tour as they are done, and remembers whether one was wrong. */

/** A step that did not come out as it should. */
class WrongOutcome extends Error {}

/** @throws WrongOutcome when what was seen is not what was expected */
export function check(condition: boolean, seen: string): asserts condition {
  if (!condition) throw new WrongOutcome(seen);
}

/**
 * Runs one step and prints its outcome and time.
 *
 * @throws what the step throws, after printing it
 */
export async function step<Result>(
  name: string,
  work: () => Promise<{ readonly outcome: string; readonly result: Result }>,
): Promise<Result> {
  const begun = performance.now();
  const seconds = () => `${((performance.now() - begun) / 1000).toFixed(2)} s`.padStart(8);
  try {
    const { outcome, result } = await work();
    console.log(`  ok     ${seconds()}  ${name}: ${outcome}`);
    return result;
  } catch (error) {
    console.error(`  WRONG  ${seconds()}  ${name}: ${error instanceof Error ? error.message : error}`);
    throw error;
  }
}

/** Overwrites the last line, where there is a terminal to see it. */
export function progress(text: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[2K         ${text}\r`);
}
