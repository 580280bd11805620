/** How long a replay store keeps its records about a refresh token. */

import type { Settings } from '../settings/settings.ts';
import type { SignOutLifetimes } from './store.ts';

/** A claim is prolonged while its refresh runs, so a crashed process delays others only this long. */
export const CLAIM_MS = 3000;
/** Long enough for other requests of the same browser that are in flight. */
const UNKNOWN_SIGN_OUT_MS = 30_000;

export interface RecordLifetimes {
  /** How long a spent refresh token yields its successor. */
  readonly replayMs: number;
  /** Longer than any call of a request in the replay window, so that its late response still gets the newest pair. */
  readonly keepMs: number;
  /** Until the response to the last replay of the pair has been sent. */
  readonly issuedMs: number;
  readonly signOut: SignOutLifetimes;
}

export function recordLifetimes({ refreshReplaySeconds, timeouts }: Settings): RecordLifetimes {
  const replayMs = refreshReplaySeconds * 1000;
  const keepMs = replayMs + timeouts.streamMs;
  const claimedMs = CLAIM_MS + timeouts.signInMs;
  const workedMs = Math.max(claimedMs, CLAIM_MS + keepMs);
  const unknownMs = Math.min(workedMs, UNKNOWN_SIGN_OUT_MS);
  return { replayMs, keepMs, issuedMs: replayMs + keepMs, signOut: { workedMs, claimedMs, unknownMs } };
}
