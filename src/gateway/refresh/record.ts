/** The record of a refresh token: made from the outcome of a refresh, and turned back into an outcome. */

import type { TokenPair } from '../upstream/token-pair.ts';
import type { RefreshVerdict } from '../upstream/upstream-api.ts';
import { decryptPair, encryptPair, type KeptPair } from './sealed-pair.ts';

/** Each claim is unique, so that a process can tell its own from another. */
export interface Claimed {
  readonly kind: 'claimed';
  readonly by: string;
}

/** Requests that arrive at or after `clearsFrom`, in milliseconds since the epoch, get their cookies cleared. */
export interface Ended {
  readonly kind: 'ended';
  readonly clearsFrom: number;
}

/** The outcome of a refresh for a request: the upstream's verdict, or an earlier sign-out. */
export type RefreshOutcome = RefreshVerdict | Ended;

export type TokenRecord =
  | Claimed
  | { readonly kind: 'renewed'; readonly sealedPair: string }
  | { readonly kind: 'rejected' }
  | { readonly kind: 'unreachable' }
  | Ended
  /** Redis has a text here that no version up to this one has written. */
  | { readonly kind: 'unreadable'; readonly text: string };

export function newClaim(): Claimed {
  return { kind: 'claimed', by: crypto.randomUUID() };
}

export async function recordOf(
  outcome: RefreshVerdict,
  spentRefreshToken: string,
  now: number,
): Promise<TokenRecord> {
  switch (outcome.kind) {
    case 'renewed': {
      const { accessToken, refreshToken, expiresInSeconds } = outcome.pair;
      const expiresAt = now + expiresInSeconds * 1000;
      const kept = { accessToken, refreshToken, expiresAt, renewedAt: now };
      return { kind: 'renewed', sealedPair: await encryptPair(kept, spentRefreshToken) };
    }
    case 'unreachable':
      return { kind: 'unreachable' };
    case 'rejected':
      return outcome;
  }
}

/** Decrypts the pair of a `renewed` record; undefined for another record, or one sealed with another token. */
export async function decryptSuccessor(
  record: TokenRecord | undefined,
  spentRefreshToken: string,
): Promise<KeptPair | undefined> {
  return record?.kind === 'renewed' ? decryptPair(record.sealedPair, spentRefreshToken) : undefined;
}

/** If the upstream does not rotate tokens, the token is not spent and may be refreshed again. */
export function isSpent(token: string, successor: Pick<KeptPair, 'refreshToken'>): boolean {
  return successor.refreshToken !== token;
}

/** The pair with the remaining lifetime of its access token. */
export function replayed({ accessToken, refreshToken, expiresAt }: KeptPair, now: number): TokenPair {
  const expiresInSeconds = Math.max(1, Math.floor((expiresAt - now) / 1000));
  return { accessToken, refreshToken, expiresInSeconds };
}

/** The outcome that a record without a readable pair stands for: `unreachable` unless it has a verdict. */
export function outcomeOf(record: TokenRecord): RefreshOutcome {
  if (record.kind === 'ended' || record.kind === 'rejected') return record;
  return { kind: 'unreachable', cause: new Error('unreachable') };
}
