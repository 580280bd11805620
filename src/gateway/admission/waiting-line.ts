/** Those that wait for room, in order of arrival. */

/** Reserves what it needs and returns true, or returns false. */
export type Attempt = () => boolean;

interface Waiting {
  readonly attempt: Attempt;
  readonly end: (succeeded: boolean) => void;
}

export class WaitingLine {
  readonly #most: number;
  readonly #waiting = new Set<Waiting>();

  /** @param most how many may wait; each keeps its request in memory */
  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves to whether the attempt has succeeded in time; at once to false when too many wait. */
  wait(attempt: Attempt, patienceMs: number): Promise<boolean> {
    if (patienceMs <= 0 || this.#waiting.size >= this.#most) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const end = (succeeded: boolean) => {
      clearTimeout(timer);
      this.#waiting.delete(waiting);
      resolve(succeeded);
    };
    const waiting = { attempt, end };
    const timer = setTimeout(end, patienceMs, false);
    this.#waiting.add(waiting);
    return promise;
  }

  /** Serves from the front, until one has no room. */
  serve(): void {
    for (const { attempt, end } of this.#waiting) {
      if (!attempt()) return;
      end(true);
    }
  }
}
