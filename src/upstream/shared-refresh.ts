/** Lets requests that carry the same refresh token share one refresh, because a rotating one works only once. */

import type { Settings } from '../settings.ts';
import { type RefreshOutcome, refresh } from './accounts.ts';

export type SharedRefresh = (refreshToken: string) => Promise<RefreshOutcome>;

/**
 * The refresh belongs to no single request: it goes on when the client that began it has gone.
 * What is known of a spent token after its refresh, here or in another instance, belongs here too.
 */
export function createSharedRefresh(settings: Settings): SharedRefresh {
  const underWay = new Map<string, Promise<RefreshOutcome>>();
  return (refreshToken) => {
    const shared = underWay.get(refreshToken);
    if (shared) return shared;
    const outcome = refresh(settings, refreshToken).finally(() => underWay.delete(refreshToken));
    underWay.set(refreshToken, outcome);
    return outcome;
  };
}
