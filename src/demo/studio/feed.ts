/** Loads a value for the page, and reloads it on request, while it may still change, and after a failure. */

export interface Feed {
  refresh(): void;
  stop(): void;
}

export interface FeedOptions<T> {
  readonly load: () => Promise<T>;
  readonly show: (value: T) => void;
  /** Whether the value may change soon, so that the feed reloads it. */
  readonly isUnsettled?: (value: T) => boolean;
  /** Called only for the first of several failures in a row. */
  readonly onFailure: (error: unknown) => void;
  readonly onRecovery: () => void;
}

const UNSETTLED_MS = 3_000;
const FAILED_MS = 10_000;

export function createFeed<T>(options: FeedOptions<T>): Feed {
  const { load, show, isUnsettled = () => false, onFailure, onRecovery } = options;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasFailed = false;
  /** A response is ignored if there was a newer request, or if the feed was stopped. */
  let turn = 0;

  function refreshAfter(milliseconds: number): void {
    timer = setTimeout(() => void refresh(), milliseconds);
  }

  async function refresh(): Promise<void> {
    clearTimeout(timer);
    turn += 1;
    const own = turn;
    try {
      const value = await load();
      if (own !== turn) return;
      show(value);
      if (hasFailed) onRecovery();
      hasFailed = false;
      if (isUnsettled(value)) refreshAfter(UNSETTLED_MS);
    } catch (error) {
      if (own !== turn) return;
      const isFirst = !hasFailed;
      hasFailed = true;
      refreshAfter(FAILED_MS);
      // This is the last step, because the callback may stop the feed.
      if (isFirst) onFailure(error);
    }
  }

  return {
    refresh: () => void refresh(),
    stop() {
      clearTimeout(timer);
      turn += 1;
      hasFailed = false;
    },
  };
}
