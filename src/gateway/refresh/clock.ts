/** The clock and the timers of the refreshes, which tests replace. */

export interface Clock {
  /** Milliseconds, which do not jump when the time is set: a fact that then seems older would sign a user out. */
  now(): number;
  sleep(ms: number): Promise<void>;
  /** Calls `work` at this interval. Returns a function that stops it. */
  every(ms: number, work: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Math.floor(performance.now()),
  sleep: (ms) => Bun.sleep(ms),
  every(ms, work) {
    const timer = setInterval(work, ms);
    return () => clearInterval(timer);
  },
};
