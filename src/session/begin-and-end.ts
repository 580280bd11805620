/** How a session begins with a token pair, and how it ends. */

import { withoutIdleTimeout } from '../http/idle-timeout.ts';
import type { Responding } from '../http/native-response.ts';
import { traceOf } from '../http/request-trace.ts';
import type { SessionEndpoints } from '../upstream/session-endpoints.ts';
import type { TokenPair } from '../upstream/token-pair.ts';
import type { SessionParts } from './session.ts';

/**
 * Stores the pair in the cookies. A session that the request came with ends here, and only here: a late response to its
 * user must not overwrite the new cookies.
 *
 * @throws GatewayError 502 when a token is too large for a cookie
 */
export async function beginSession(
  { cookies, sharedRefresh }: SessionParts,
  { request, set }: Responding,
  pair: TokenPair,
): Promise<void> {
  const { refreshToken } = await cookies.read(request.headers.get('cookie'), set);
  if (refreshToken !== undefined) await sharedRefresh.end(refreshToken);
  await sharedRefresh.begin(pair.refreshToken);
  await cookies.store(set, pair);
}

/**
 * Ends the session here, whether or not the upstream hears of it: the refresh token yields no successor any more,
 * and the cookies are cleared.
 */
export async function endSession(
  { settings, cookies, sharedRefresh }: SessionParts,
  upstreamSessions: SessionEndpoints,
  context: Responding,
): Promise<void> {
  const { request, set } = context;
  const { accessToken, refreshToken } = await cookies.read(context);
  const pairs: Pick<TokenPair, 'accessToken' | 'refreshToken'>[] = [];
  if (accessToken !== undefined && refreshToken !== undefined) pairs.push({ accessToken, refreshToken });
  const newest = refreshToken === undefined ? undefined : await sharedRefresh.end(refreshToken);
  if (newest) pairs.push(newest);
  const trace = traceOf(request);
  await withoutIdleTimeout(context, settings.timeouts.logoutMs, () =>
    Promise.allSettled(pairs.map((pair) => upstreamSessions.signOut(pair, trace))),
  );
  cookies.clear(set);
}
