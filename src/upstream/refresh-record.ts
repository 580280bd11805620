/** What a replay store keeps of a refresh: its outcome as a record, and a record as a pair again. */

import { ENDED, REJECTED, RENEWED, UNREACHABLE } from './replay-store.ts';
import { type KeptPair, openPair, sealPair } from './sealed-pair.ts';
import type { RefreshOutcome } from './session-endpoints.ts';
import type { TokenPair } from './token-pair.ts';

/** @param replayMs how long whoever has the spent token gets the pair */
export function recordOf(outcome: RefreshOutcome, spentRefreshToken: string, replayMs: number): string {
  switch (outcome.kind) {
    case 'renewed': {
      const { accessToken, refreshToken, expiresInSeconds } = outcome.pair;
      const now = Date.now();
      const kept = {
        accessToken,
        refreshToken,
        expiresAt: now + expiresInSeconds * 1000,
        replayUntil: now + replayMs,
      };
      return RENEWED + sealPair(kept, spentRefreshToken);
    }
    case 'rejected':
      return REJECTED;
    case 'unreachable':
      return UNREACHABLE;
  }
}

/** The pair of a record that says `renewed`; undefined for any other, and for one sealed with another token. */
export function openRenewed(record: string | undefined, spentRefreshToken: string): KeptPair | undefined {
  return record?.startsWith(RENEWED) ? openPair(record.slice(RENEWED.length), spentRefreshToken) : undefined;
}

/** The pair with what is left of its access token's life. */
export function replayed({ accessToken, refreshToken, expiresAt }: KeptPair): TokenPair {
  return {
    accessToken,
    refreshToken,
    expiresInSeconds: Math.max(1, Math.floor((expiresAt - Date.now()) / 1000)),
  };
}

/** Whether the record is an outcome for those alone who have waited for it, or older than the replay window. */
export function isOver(record: string, token: string): boolean {
  const successor = openRenewed(record, token);
  if (!successor) return record === UNREACHABLE;
  return successor.refreshToken === token || successor.replayUntil <= Date.now();
}

/** A record that does not open is no verdict of the upstream either. */
export function failureOf(record: string): RefreshOutcome {
  if (record === REJECTED || record === ENDED) return { kind: 'rejected' };
  return { kind: 'unreachable', cause: new Error(UNREACHABLE) };
}
