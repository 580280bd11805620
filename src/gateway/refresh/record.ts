/** What a replay store keeps of a refresh: its outcome as a record, and a record as a pair again. */

import type { RefreshOutcome } from '../upstream/session-endpoints.ts';
import type { TokenPair } from '../upstream/token-pair.ts';
import { decryptPair, encryptPair, type KeptPair } from './sealed-pair.ts';
import { ENDED, isEnded, REJECTED, RENEWED, UNREACHABLE } from './store.ts';

export function recordOf(outcome: RefreshOutcome, spentRefreshToken: string, now: number): string {
  switch (outcome.kind) {
    case 'renewed': {
      const { accessToken, refreshToken, expiresInSeconds } = outcome.pair;
      const kept = {
        accessToken,
        refreshToken,
        expiresAt: now + expiresInSeconds * 1000,
        renewedAt: now,
      };
      return RENEWED + encryptPair(kept, spentRefreshToken);
    }
    case 'rejected':
      return REJECTED;
    case 'unreachable':
      return UNREACHABLE;
    case 'ended':
      return ENDED + outcome.clearsFrom;
  }
}

/** The pair of a record that says `renewed`; undefined for any other, and for one sealed with another token. */
export function decryptSuccessor(
  record: string | undefined,
  spentRefreshToken: string,
): KeptPair | undefined {
  return record?.startsWith(RENEWED)
    ? decryptPair(record.slice(RENEWED.length), spentRefreshToken)
    : undefined;
}

/** The pair with what is left of its access token's life. */
export function replayed({ accessToken, refreshToken, expiresAt }: KeptPair, now: number): TokenPair {
  return {
    accessToken,
    refreshToken,
    expiresInSeconds: Math.max(1, Math.floor((expiresAt - now) / 1000)),
  };
}

/** The outcome of a record without a pair. One that does not open is no verdict of the upstream either. */
export function outcomeOf(record: string): RefreshOutcome {
  if (isEnded(record)) return { kind: 'ended', clearsFrom: Number(record.slice(ENDED.length)) };
  if (record === REJECTED) return { kind: 'rejected' };
  return { kind: 'unreachable', cause: new Error(UNREACHABLE) };
}
