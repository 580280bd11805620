/** The interface of the replay store, which remembers refreshes and sign-outs of refresh tokens, and for how long. */

import type { Settings } from '../settings/settings.ts';
import type { Ended, TokenRecord } from './record.ts';

/** Stores records by key, each with a lifetime. Coordination relies on `add` and `replace` being atomic. */
export interface ReplayStore {
  /** Adds the record unless there is one. Returns the existing record, or undefined when this one was added. */
  add(key: string, record: TokenRecord, lifetimeMs: number): Promise<TokenRecord | undefined>;
  /** Replaces the record if it equals `expected`. Returns whether it did. */
  replace(key: string, expected: TokenRecord, record: TokenRecord, lifetimeMs: number): Promise<boolean>;
  /**
   * Records a sign-out unless there is one, and returns the previous record. A token has worked when a refresh has
   * spent or issued it. The number of other sign-outs is bounded, because anybody can send them with made-up tokens.
   */
  end(
    key: string,
    ended: Ended,
    lifetimes: SignOutLifetimes,
    hasWorked?: boolean,
  ): Promise<TokenRecord | undefined>;
  /** Marks this token as issued by a refresh, for as long as a response may still bring it to a browser. */
  markIssued(key: string, lifetimeMs: number): Promise<void>;
  /** Records when a client first presented this token, if a refresh has issued it. */
  markPresented(key: string, at: number): Promise<void>;
  /** When a client first presented this token, in milliseconds since the epoch. */
  presentedAt(key: string): Promise<number | undefined>;
  get(key: string): Promise<TokenRecord | undefined>;
  /** Lets every `add` go on at once that waits for what other instances know. */
  stopWaiting(): void;
  /** How long an outcome must stay for waiting requests of other processes. */
  readonly lingerMs: number;
}

/** How long a sign-out is kept: for a token that has worked, for one that is being refreshed, and for any other. */
export interface SignOutLifetimes {
  readonly workedMs: number;
  readonly claimedMs: number;
  readonly unknownMs: number;
}

/** A claim is prolonged while its refresh runs, so a crashed process delays others only this long. */
export const CLAIM_MS = 3000;
/** Long enough for other requests of the same browser that are in flight. */
const UNKNOWN_SIGN_OUT_MS = 30_000;

export type RecordLifetimes = ReturnType<typeof recordLifetimes>;

export function recordLifetimes({ refreshReplaySeconds, timeouts }: Settings) {
  /** The longest that a refresh may take. */
  const refreshMs = timeouts.signInMs;
  /** How long a spent refresh token yields its successor. */
  const replayMs = refreshReplaySeconds * 1000;
  /** Longer than any call of a request in the replay window, so that its late response still gets the newest pair. */
  const keepMs = replayMs + timeouts.streamMs;
  /** Until the response to the last replay of the pair has been sent. */
  const issuedMs = replayMs + keepMs;
  const claimedMs = CLAIM_MS + refreshMs;
  const workedMs = Math.max(claimedMs, CLAIM_MS + keepMs);
  const unknownMs = Math.min(workedMs, UNKNOWN_SIGN_OUT_MS);
  return { refreshMs, replayMs, keepMs, issuedMs, signOut: { workedMs, claimedMs, unknownMs } };
}
