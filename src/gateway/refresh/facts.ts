/** The facts about a refresh token: their keys, how long they are kept, and the pair that is sealed in one. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { seal, unseal } from '../crypto/seal.ts';
import type { Settings } from '../settings/settings.ts';
import { Token } from '../upstream/token-pair.ts';
import type { RefreshVerdict, UpstreamApi } from '../upstream/upstream-api.ts';
import type { Clock } from './clock.ts';
import type { Fact, Kept, ReplayStore } from './store.ts';

/** A lease is prolonged while its refresh runs, so an instance that crashes delays the others only this long. */
export const LEASE_MS = 3000;

/** What every part of the refresh uses. */
export interface RefreshParts {
  readonly store: ReplayStore;
  readonly upstream: UpstreamApi;
  readonly clock: Clock;
  readonly lifetimes: ReturnType<typeof lifetimesFor>;
}

/** A refresh token that the upstream has issued again is not spent, and may be sent again. */
export async function factOf(verdict: RefreshVerdict, refreshToken: string): Promise<Fact> {
  if (verdict.kind !== 'renewed') return { kind: verdict.kind, detail: '' };
  const kind = verdict.pair.refreshToken === refreshToken ? 'reissued' : 'renewed';
  return { kind, detail: await seal(JSON.stringify(verdict.pair), keyFrom(refreshToken)) };
}

const SealedPair = Type.Object({ accessToken: Token, refreshToken: Token, expiresInSeconds: Type.Number() });

/**
 * Returns the pair in a fact with the time that its access token has left, which may be negative; undefined when it has
 * none, and for a pair that was sealed with another token.
 */
export async function pairIn(fact: Kept | undefined, refreshToken: string, now: number) {
  if (fact?.kind !== 'renewed' && fact?.kind !== 'reissued') return undefined;
  const contents = await unseal(fact.detail, keyFrom(refreshToken));
  const pair: unknown = contents && JSON.parse(contents);
  if (!Value.Check(SealedPair, pair)) return undefined;
  return { ...pair, expiresInSeconds: pair.expiresInSeconds - (now - fact.writtenAt) / 1000 };
}

/** Only a holder of the refresh token can read its pair. @see RFC 5869 */
function keyFrom(refreshToken: string): Uint8Array {
  const { hkdfSync } = process.getBuiltinModule('node:crypto');
  const info = 'music-gateway: successor of a refresh token';
  return new Uint8Array(hkdfSync('sha256', refreshToken, '', info, 32));
}

/** The key of what has become of a token: its lease, then the verdict of its refresh, or its sign-out. */
export const factKey = (refreshToken: string) => `fact:${hashOf(refreshToken)}`;

/** The key of its mark, which says that a refresh has issued the token, and later that a client has presented it. */
export const markKey = (refreshToken: string) => `mark:${hashOf(refreshToken)}`;
export const ISSUED: Fact = { kind: 'issued', detail: '' };
export const PRESENTED: Fact = { kind: 'presented', detail: '' };

/** Reveals nothing about the token. */
function hashOf(refreshToken: string): string {
  return new Bun.CryptoHasher('sha256').update(refreshToken).digest('base64url');
}

/** In milliseconds. */
export function lifetimesFor({ refreshReplaySeconds, timeouts }: Settings) {
  /** How long a spent refresh token yields its successor. */
  const replayMs = refreshReplaySeconds * 1000;
  /** Longer than any call of a request in the replay window, so that its late response still gets the newest pair. */
  const renewedMs = replayMs + timeouts.streamMs;
  /** The longest time that another instance may take to refresh a token. */
  const patienceMs = timeouts.signInMs + LEASE_MS;
  /** A refresh may be in flight at the sign-out, and its renewal must not outlive the end of the session. */
  const endedMs = patienceMs + renewedMs;
  return {
    ...{ replayMs, renewedMs, endedMs, patienceMs },
    /** Until the response to the last replay of the pair has been sent. */
    issuedMs: replayMs + renewedMs,
    /** Long enough for the other instances to see that there was no verdict. */
    unreachableMs: 500,
    /** Longer than a request is in flight: the upstream would refuse it, and its response clear newer cookies. */
    rejectedMs: endedMs,
  };
}
