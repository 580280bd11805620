/** Runs the steps of the tour, and prints the outcome of each. */

class WrongOutcome extends Error {}

/** @throws WrongOutcome with `seen` as its message when the condition is false */
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

/** Overwrites the last line of the terminal. Writes nothing if the output is not a terminal. */
export function progress(text: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[2K         ${text}\r`);
}
