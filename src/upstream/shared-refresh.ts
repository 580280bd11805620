/** Makes one refresh of the many that requests with the same refresh token ask for: a rotating one works only once. */

import type { Settings } from '../settings.ts';
import { type RefreshOutcome, refresh } from './accounts.ts';

export type SharedRefresh = (refreshToken: string) => Promise<RefreshOutcome>;

/**
 * The refresh belongs to no single request: it goes on when the client that began it has gone. Its new pair is
 * kept for a while, for the requests that were sent with the spent token and come late.
 */
export function createSharedRefresh(settings: Settings): SharedRefresh {
  const outcomes = new Map<string, Promise<RefreshOutcome>>();
  const forget = (refreshToken: string) => outcomes.delete(refreshToken);

  async function refreshOnce(refreshToken: string): Promise<RefreshOutcome> {
    const outcome = await refresh(settings, refreshToken);
    const replayMs = outcome.kind === 'renewed' ? settings.refreshReplaySeconds * 1000 : 0;
    if (replayMs > 0) setTimeout(forget, replayMs, refreshToken).unref();
    else forget(refreshToken);
    return outcome;
  }

  return (refreshToken) => {
    const known = outcomes.get(refreshToken);
    if (known) return known;
    const outcome = refreshOnce(refreshToken);
    outcomes.set(refreshToken, outcome);
    return outcome;
  };
}
