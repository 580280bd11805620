/** The origin rule: only the studio's own origins may use the gateway. */

import { GatewayError } from './errors.ts';
import { messages } from './messages.ts';

/**
 * @throws GatewayError 403 when `Origin` is missing or is not, letter by letter, an allowed origin
 * @see RFC 6454 section 7
 */
export function requireAllowedOrigin(request: Request, allowedOrigins: ReadonlySet<string>): void {
  const origin = request.headers.get('origin');
  if (origin === null || !allowedOrigins.has(origin)) throw new GatewayError(403, messages.originNotAllowed);
}
