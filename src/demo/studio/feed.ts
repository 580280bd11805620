/** Something that the page shows and loads again: when asked to, when it will change by itself, and after a failure. */

export interface Feed {
  refresh(): void;
  stop(): void;
}

export interface FeedOptions<T> {
  readonly load: () => Promise<T>;
  readonly show: (value: T) => void;
  /** Whether it will change by itself, so that it is worth another look. */
  readonly isUnsettled?: (value: T) => boolean;
  /** Called for the first of several failures in a row. */
  readonly onFailure: (error: unknown) => void;
  readonly onRecovery: () => void;
}

const UNSETTLED_MS = 3_000;
const FAILED_MS = 10_000;

export function createFeed<T>(options: FeedOptions<T>): Feed {
  const { load, show, isUnsettled = () => false, onFailure, onRecovery } = options;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasFailed = false;
  /** An answer counts only as long as nothing newer was asked for. */
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
      // It may stop the feed.
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
