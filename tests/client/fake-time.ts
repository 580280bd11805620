/** A clock that a test moves, so that nothing waits. */

import { jest } from 'bun:test';

/** Stops the clock until the test ends, when the preload restores it. The returned function moves it on and waits for the effects. */
export function fakeTime(now = new Date()): (milliseconds: number) => Promise<void> {
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
  const advance = fakeTime();
  let isOver = false;
  const work = begin().finally(() => {
    isOver = true;
  });
  // Whoever called gets the failure; this only keeps it from counting as unhandled meanwhile.
  work.catch(() => {});
  while (!isOver) await advance(50);
  return work;
}
