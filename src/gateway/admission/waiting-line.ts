/** Those that wait for room, in order of arrival. To wait, to be served and to give up take constant time. */

/** Reserves what it needs and returns true, or returns false. */
export type Attempt = () => boolean;

interface Waiting {
  readonly attempt: Attempt;
  readonly end: (succeeded: boolean) => void;
}

export class WaitingLine {
  readonly #most: number;
  readonly #waiting = new Set<Waiting>();
  /**
   * Kept, because a new iterator would skip all that have left one by one, which is slow. It never ends, because it is
   * asked only while somebody waits.
   */
  readonly #order = this.#waiting.values();
  #first: Waiting | undefined;

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
    while (this.#waiting.size > 0) {
      if (!this.#first || !this.#waiting.has(this.#first)) this.#first = this.#order.next().value;
      if (!this.#first?.attempt()) return;
      this.#first.end(true);
    }
  }
}
