/** Lets time pass for the gateways of this process, without waiting. */

import { spyOn } from 'bun:test';

const realNow = performance.now.bind(performance);
let aheadMs = 0;

/** Until the end of the test. */
export function later(seconds: number): void {
  aheadMs += seconds * 1000;
  spyOn(performance, 'now').mockImplementation(() => realNow() + aheadMs);
}

export function backToNow(): void {
  if (aheadMs > 0) spyOn(performance, 'now').mockRestore();
  aheadMs = 0;
}
