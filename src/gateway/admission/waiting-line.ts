/** Those that wait for room, in order of arrival. */

/** How an attempt to reserve has ended: `later` when what it lacks is no memory, so that it does not delay others. */
export type Attempt = 'served' | 'full' | 'later';

interface Waiting {
  readonly attempt: () => Attempt;
  readonly end: (isServed: boolean) => void;
}

export class WaitingLine {
  readonly #most: number;
  readonly #waiting = new Set<Waiting>();

  /** @param most how many may wait */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /**
   * Resolves to whether the attempt has succeeded in time; at once to false when too many wait.
   *
   * @param patienceMs may be infinite
   * @param signal that of the client: nobody waits for one that has disconnected
   */
  wait(attempt: () => Attempt, patienceMs: number, signal?: AbortSignal): Promise<boolean> {
    if (patienceMs <= 0 || this.#waiting.size >= this.#most || signal?.aborted) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const onGone = () => waiting.end(false);
    const end = (isServed: boolean) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onGone);
      this.#waiting.delete(waiting);
      resolve(isServed);
    };
    const waiting: Waiting = { attempt, end };
    const timer = Number.isFinite(patienceMs) ? setTimeout(end, patienceMs, false) : undefined;
    signal?.addEventListener('abort', onGone);
    this.#waiting.add(waiting);
    return promise;
  }

  /** Serves from the front, until there is no room for one. */
  serve(): void {
    for (const { attempt, end } of this.#waiting) {
      const outcome = attempt();
      if (outcome === 'full') return;
      if (outcome === 'served') end(true);
    }
  }
}
