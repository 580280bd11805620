/** Until when a spent refresh token yields its successor. */

import type { KeptPair } from './sealed-pair.ts';

/** Requests that were sent before the client had the new cookies arrive within this time. */
const PRESENTED_MS = 10_000;

interface Replay {
  /** When the request with the spent token arrived; all times are in milliseconds since the epoch. */
  readonly arrivedAt: number;
  /** What the spent token was exchanged for. */
  readonly successor: KeptPair;
  readonly replayMs: number;
}

/** A request that arrived before the refresh is in time, however long it has waited for its first response. */
export function isInTime({ arrivedAt, successor, replayMs }: Replay): boolean {
  return arrivedAt <= successor.renewedAt + replayMs;
}

/**
 * Whether a client certainly has the successor, so that a request with the spent token can only come from a copy: the
 * successor was presented more than 10 s before, or it has been renewed since it was presented.
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
