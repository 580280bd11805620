/** A few places, for which others wait in turn: a browser opens six connections to a host over HTTP/1.1. */

export interface Places {
  /**
   * Does the work when there is a place. Rejects with the signal's reason if it is aborted before.
   *
   * @param onWait called when there is no place yet
   */
  during<Result>(signal: AbortSignal, onWait: () => void, work: () => Promise<Result>): Promise<Result>;
}

export function createPlaces(count: number): Places {
  let free = count;
  const waiting = new Set<() => void>();

  /** Whoever waits longest gets the place at once, so that nobody else can take it meanwhile. */
  function leave(): void {
    const [next] = waiting;
    if (next === undefined) free += 1;
    else {
      waiting.delete(next);
      next();
    }
  }

  async function enter(signal: AbortSignal, onWait: () => void): Promise<void> {
    signal.throwIfAborted();
    if (free > 0) {
      free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => {
      // A place that has been got already is left when the work fails.
      if (waiting.delete(resolve)) reject(signal.reason);
    };
    waiting.add(resolve);
    signal.addEventListener('abort', onAbort);
    onWait();
    await promise.finally(() => signal.removeEventListener('abort', onAbort));
  }

  return {
    async during(signal, onWait, work) {
      await enter(signal, onWait);
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}
