/** Shares a check among all that need one at about the same time. */

/**
 * Returns a function whose every call gets the result of a check that began after the call: an earlier one may have
 * been overtaken by what the caller has just loaded.
 */
export function shareCheck(check: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  function start(): Promise<void> {
    running = check().finally(() => {
      running = undefined;
    });
    return running;
  }

  function startNext(): Promise<void> {
    next = undefined;
    return start();
  }

  return () => {
    if (!running) return start();
    next ??= running.then(startNext, startNext);
    return next;
  };
}
