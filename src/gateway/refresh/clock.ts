/** The clock, timers and time limit that coordinate refreshes, so that tests can replace time. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  sleep(ms: number): Promise<void>;
  /** Calls `work` at this interval. Returns a function that stops it. */
  every(ms: number, work: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms) => Bun.sleep(ms),
  every(ms, work) {
    const timer = setInterval(work, ms);
    return () => clearInterval(timer);
  },
};

/** Rejects when the promise takes longer, but only after replies that have already arrived were processed. */
export async function inTime<Result>(
  promise: Promise<Result>,
  timeoutMs: number,
  clock: Clock,
): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  // Two half-length timers: if the event loop was blocked, the first fires late and Redis still gets the second half.
  let halves = 0;
  const stop = clock.every(timeoutMs / 2, () => {
    halves++;
    if (halves === 2) void clock.sleep(0).then(() => reject(new DOMException('', 'TimeoutError')));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    stop();
  }
}
