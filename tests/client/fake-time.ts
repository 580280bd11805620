/** A clock that a test moves, so that nothing waits. */

import { jest } from 'bun:test';

/** The time of day in a test with {@link fakeTime}. */
export const NOW = new Date('2026-03-04T05:06:07Z');

/** Stops the clock until the test ends, when the preload restores it. The returned function moves it on and waits for the effects. */
export function fakeTime(now = NOW): (milliseconds: number) => Promise<void> {
  jest.useFakeTimers({ now });
  return async (milliseconds) => {
    jest.advanceTimersByTime(milliseconds);
    await settle();
  };
}

/** Lets every promise that is already resolved take effect. */
export function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Moves the clock on until the work is over, and returns its result. */
export async function fastForward<Result>(begin: () => Promise<Result>): Promise<Result> {
  const advance = fakeTime(new Date());
  let isOver = false;
  const work = begin().finally(() => {
    isOver = true;
  });
  // Whoever called gets the failure; this only keeps it from counting as unhandled meanwhile.
  work.catch(() => {});
  while (!isOver) await advance(50);
  return work;
}
