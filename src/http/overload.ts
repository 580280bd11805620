/** Turns long calls away when too much is under way, so that the short ones go on being served. */

import type { Server } from 'bun';
import { GatewayError } from './errors.ts';
import { messages } from './messages.ts';
import { proxyStatus } from './proxy-status.ts';

const RETRY_AFTER_SECONDS = 5;

/**
 * Counts what the server has under way: whatever waits for the upstream, and every body that is not at its end yet.
 * Session checks and sign-ins are among it, but they are short and few beside held calls.
 *
 * @throws GatewayError 503 when there is more than `maxHeldRequests` with this request
 * @see RFC 9110 section 10.2.3 (Retry-After)
 */
export function refuseOverload(
  server: Pick<Server<unknown>, 'pendingRequests'> | null,
  maxHeldRequests: number,
): void {
  if (server === null || server.pendingRequests <= maxHeldRequests) return;
  throw new GatewayError(503, messages.overloaded, {
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS), ...proxyStatus('connection_limit_reached') },
  });
}
