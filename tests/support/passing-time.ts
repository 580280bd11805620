/** Lets faked time pass, and everything that is due in it happen. */

import { jest } from 'bun:test';

export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

export async function pass(ms: number): Promise<void> {
  await settle();
  jest.advanceTimersByTime(ms);
  await settle();
}
