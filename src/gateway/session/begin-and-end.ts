/** Begins a session with a token pair, and ends it. */

import type { Responding } from '../http/complete-response.ts';
import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import { type RequestTrace, traceOf } from '../trace/request-trace.ts';
import type { SessionEndpoints } from '../upstream/session-endpoints.ts';
import type { TokenPair } from '../upstream/token-pair.ts';
import type { SessionParts } from './session.ts';

/** Requests that the client sent before it had the cookies of its sign-in arrive within this time. */
const SENT_BEFORE_MS = 10_000;

type Pair = Pick<TokenPair, 'accessToken' | 'refreshToken'>;

/**
 * Stores the pair in the cookies. If the request has the cookies of another session, that session ends in the gateway
 * but not at the upstream, so that a late response to it cannot overwrite the new cookies.
 *
 * @throws GatewayError 502 when a token is too large for a cookie
 */
export async function beginSession(
  { cookies, refreshCoordinator }: SessionParts,
  context: Responding,
  pair: TokenPair,
): Promise<void> {
  const { refreshToken } = await cookies.read(context);
  if (refreshToken !== undefined) await refreshCoordinator.end(refreshToken, SENT_BEFORE_MS);
  await refreshCoordinator.begin(pair.refreshToken);
  await cookies.store(context.set, pair);
}

/**
 * Ends the session here, whether or not the upstream can be reached: the refresh token no longer yields a successor,
 * and the cookies are cleared.
 */
export async function endSession(
  { settings, cookies, refreshCoordinator }: SessionParts,
  upstreamSessions: SessionEndpoints,
  context: Responding,
): Promise<void> {
  const { accessToken, refreshToken } = await cookies.read(context);
  if (refreshToken !== undefined) {
    const newest = await refreshCoordinator.end(refreshToken);
    const pairs: Pair[] = accessToken === undefined ? [] : [{ accessToken, refreshToken }];
    if (newest) pairs.push(newest);
    const last = newest?.refreshToken ?? refreshToken;
    // A refresh in flight in this process signs out its new pair itself.
    const revokes = settings.signOutRevokes && !refreshCoordinator.isRefreshing(last);
    const { signInMs, logoutMs } = settings.timeouts;
    const trace = traceOf(context.request);
    await withoutIdleTimeout(context, revokes ? signInMs + 2 * logoutMs : logoutMs, async () => {
      const needsRefresh = await signOut(upstreamSessions, pairs, trace);
      if (revokes && needsRefresh) await refreshAndSignOut(upstreamSessions, last, trace);
    });
  }
  cookies.clear(context.set);
}

/** @returns whether a refresh would help: there is no pair, or the access token of the last one has expired */
async function signOut(
  upstreamSessions: SessionEndpoints,
  pairs: readonly Pair[],
  trace: RequestTrace,
): Promise<boolean> {
  const outcomes = await Promise.allSettled(pairs.map((pair) => upstreamSessions.signOut(pair, trace)));
  const last = outcomes.at(-1);
  return last === undefined || (last.status === 'fulfilled' && last.value === 401);
}

/** The refresh is not shared, because the session has ended here and no request may get the new pair. */
async function refreshAndSignOut(
  upstreamSessions: SessionEndpoints,
  refreshToken: string,
  trace: RequestTrace,
): Promise<void> {
  const outcome = await upstreamSessions.refresh(refreshToken, trace);
  if (outcome.kind === 'renewed') await signOut(upstreamSessions, [outcome.pair], trace);
}
