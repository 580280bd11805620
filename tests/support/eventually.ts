/** Waits for what no event reports. */

const CHECK_EVERY_MS = 5;
const DEADLINE_MS = 20_000;

/**
 * Checks the condition again and again until it returns something truthy, and returns that.
 *
 * @param what completes the sentence "Waited 20 s for …"
 */
export async function eventually<Value>(
  condition: () => Value | Promise<Value>,
  what: string,
  deadlineMs = DEADLINE_MS,
): Promise<NonNullable<Value>> {
  const giveUpAt = performance.now() + deadlineMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > giveUpAt) throw new Error(`Waited ${deadlineMs / 1000} s for ${what}`);
    await Bun.sleep(CHECK_EVERY_MS);
  }
}
