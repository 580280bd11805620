/** Decides until when a spent refresh token yields its successor. */

import type { KeptPair } from './sealed-pair.ts';

/** Requests that the client sent before it had the new cookies arrive within this time. */
const PRESENTED_MS = 10_000;

/** If the upstream does not rotate tokens, the token is not spent and may be refreshed again. */
export function isSpent(token: string, successor: Pick<KeptPair, 'refreshToken'>): boolean {
  return successor.refreshToken !== token;
}

/**
 * Whether a client certainly has the successor, so that the spent token can only come from a copy: the successor was
 * presented more than 10 s before this request, or was renewed after it had been presented.
 *
 * @param presentedAt when a client first presented the successor
 * @param next the pair that the successor was exchanged for
 * @see RFC 9700 section 4.14.2
 */
export function isClosed(
  arrivedAt: number,
  presentedAt: number | undefined,
  next: KeptPair | undefined,
): boolean {
  if (presentedAt === undefined) return false;
  return arrivedAt > presentedAt + PRESENTED_MS || (next !== undefined && arrivedAt > next.renewedAt);
}
