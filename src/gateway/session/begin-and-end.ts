/** Begins a session with a token pair, and ends it. */

import type { Exchange } from '../exchange/exchange.ts';
import type { RequestRecord } from '../record/request-record.ts';
import { SENT_BEFORE_MS } from '../refresh/coordinator.ts';
import type { TokenPair, Tokens } from '../upstream/token-pair.ts';
import type { UpstreamApi } from '../upstream/upstream-api.ts';
import type { FoundTokens } from './cookies.ts';
import { type SessionParts, storePair } from './session.ts';

/** Nobody signs in within a second. A later response could clear the cookies of that sign-in. */
const RESPONDS_WITHIN_MS = 800;

/**
 * Stores the pair in the cookies. If the request has the cookies of another session, that session ends in the gateway
 * but not at the upstream, so that a late response to it cannot overwrite the new cookies.
 *
 * @throws GatewayError 502 when a token is too large for a cookie
 */
export async function beginSession(
  parts: SessionParts,
  exchange: Exchange,
  { refreshToken }: FoundTokens,
  pair: TokenPair,
): Promise<void> {
  // First, because a sign-in that fails must not end the other session.
  await storePair(parts, exchange, pair);
  // A client that has gone gets no cookies, and goes on with the other session.
  if (refreshToken !== undefined && !exchange.request.signal.aborted)
    await parts.refreshCoordinator.end(refreshToken, SENT_BEFORE_MS);
  await parts.refreshCoordinator.forget(pair.refreshToken);
}

/**
 * Ends the session here, whether or not the upstream can be reached: the refresh token no longer yields a successor, and
 * the cookies are cleared. A token that had ended here is signed out again, but not refreshed: it may be spent. Does not
 * wait long for the upstream; the exchange stays open until it has responded.
 */
export async function endSession(
  { settings, api, cookies, refreshCoordinator }: SessionParts,
  exchange: Exchange,
  { accessToken, refreshToken }: FoundTokens,
): Promise<void> {
  const { record, set } = exchange;
  if (refreshToken !== undefined) {
    const { newest, hadEnded, isRefreshing } = await refreshCoordinator.end(refreshToken);
    const pairs: Tokens[] = accessToken === undefined ? [] : [{ accessToken, refreshToken }];
    if (newest) pairs.push(newest);
    const revokes = settings.signOutRevokes && !hadEnded && !isRefreshing;
    const last = newest?.refreshToken ?? refreshToken;
    const called = signOutUpstream(api, pairs, revokes ? last : undefined, record);
    exchange.keepOpenUntil(called);
    await Promise.race([called, Bun.sleep(record.startedAt + RESPONDS_WITHIN_MS - performance.now())]);
  }
  cookies.clear(set);
}

/** @param spare the refresh token to revoke by a refresh if no access token is good; undefined for no revocation */
async function signOutUpstream(
  api: UpstreamApi,
  pairs: readonly Tokens[],
  spare: string | undefined,
  record: RequestRecord,
): Promise<void> {
  const needsRefresh = await signOut(api, pairs, record);
  if (spare === undefined || !needsRefresh) return;
  // It is not shared, because the session has ended here and no request may get the new pair.
  const verdict = await api.refresh(spare, record, 'signOuts');
  if (verdict.kind === 'renewed') await signOut(api, [verdict.pair], record);
}

/** @returns whether a refresh would help: there is no pair, or the upstream has refused the last one's access token */
async function signOut(api: UpstreamApi, pairs: readonly Tokens[], record: RequestRecord): Promise<boolean> {
  const outcomes = await Promise.allSettled(pairs.map((pair) => api.signOut(pair, record)));
  const last = outcomes.at(-1);
  return last === undefined || (last.status === 'fulfilled' && last.value === 401);
}
