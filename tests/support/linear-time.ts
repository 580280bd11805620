/** Tells linear work from work that takes longer, on any machine: it counts the processor's time, also on a busy one. */

import { expect } from 'bun:test';

/** The first ones wait for the compiler. */
const TRIES = 5;
/** A sixteenth of the size takes a sixteenth of the time, but a 256th where the time is quadratic. */
const PART = 16;
const BOUND = 64;
/** What takes no longer is too short to be compared: on a busy machine, memory alone can take so long. */
const SHORT_MS = 300;

export function expectLinear(work: (size: number) => unknown, size: number, what: string): void {
  const timeMs = (size: number) => {
    const before = process.cpuUsage();
    work(size);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  const partMs = Math.min(...Array.from({ length: TRIES }, () => timeMs(size / PART)));
  const longestMs = BOUND * partMs + SHORT_MS;
  const isShort = [1, 2, 3].some(() => timeMs(size) < longestMs);
  expect(isShort, what).toBeTrue();
}
