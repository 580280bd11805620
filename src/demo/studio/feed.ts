/** Loads a value for the page, and reloads it on request, while it may still change, and after a failure. */

import { GatewayRequestError } from '../../client/gateway-request.ts';

export interface Feed {
  refresh(): void;
  stop(): void;
}

export interface FeedOptions<T> {
  readonly load: () => Promise<T>;
  readonly show: (value: T) => void;
  /** Whether the value may change soon, so that the feed reloads it. */
  readonly isUnsettled?: (value: T) => boolean;
  /** Of several failures in a row, called for the first, and for each that is of another kind than the one before. */
  readonly onFailure: (error: unknown) => void;
  readonly onRecovery: () => void;
}

const UNSETTLED_MS = 3_000;
const FAILED_MS = 10_000;

export function createFeed<T>(options: FeedOptions<T>): Feed {
  const { load, show, isUnsettled = () => false, onFailure, onRecovery } = options;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** The kind of the last failure, until it is over. */
  let failure: ReturnType<typeof kindOf> | undefined;
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
      if (failure !== undefined) onRecovery();
      failure = undefined;
      if (isUnsettled(value)) refreshAfter(UNSETTLED_MS);
    } catch (error) {
      if (own !== turn) return;
      const before = failure;
      failure = kindOf(error);
      refreshAfter(FAILED_MS);
      // This is the last step, because the callback may stop the feed.
      if (failure !== before) onFailure(error);
    }
  }

  return {
    refresh: () => void refresh(),
    stop() {
      clearTimeout(timer);
      turn += 1;
      failure = undefined;
    },
  };
}

function kindOf(error: unknown): number | 'other' {
  return error instanceof GatewayRequestError ? error.status : 'other';
}
