/** Converts the outcome of a refresh to the record that a replay store keeps, and back. */

import type { TokenPair } from '../upstream/token-pair.ts';
import type { RefreshOutcome } from '../upstream/upstream-api.ts';
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

/** Decrypts the pair of a `renewed` record; undefined for another record, or one sealed with another token. */
export function decryptSuccessor(
  record: string | undefined,
  spentRefreshToken: string,
): KeptPair | undefined {
  return record?.startsWith(RENEWED)
    ? decryptPair(record.slice(RENEWED.length), spentRefreshToken)
    : undefined;
}

/** The pair with the remaining lifetime of its access token. */
export function replayed({ accessToken, refreshToken, expiresAt }: KeptPair, now: number): TokenPair {
  return {
    accessToken,
    refreshToken,
    expiresInSeconds: Math.max(1, Math.floor((expiresAt - now) / 1000)),
  };
}

/** The outcome of a record without a pair. A record that cannot be read is not a verdict of the upstream. */
export function outcomeOf(record: string): RefreshOutcome {
  if (isEnded(record)) return { kind: 'ended', clearsFrom: Number(record.slice(ENDED.length)) };
  if (record === REJECTED) return { kind: 'rejected' };
  return { kind: 'unreachable', cause: new Error(UNREACHABLE) };
}
