/** Relays the response of session check and models from memory. */

import type { Exchange } from '../exchange/exchange.ts';
import { GatewayError } from '../http/errors.ts';
import { CONTENT_SECURITY_POLICY, retryHeaders } from '../http/forwarded-headers.ts';
import { proxyStatus } from '../http/proxy-status.ts';
import { isDecodable, type UpstreamResponse } from '../upstream/upstream-response.ts';

/**
 * Relays the upstream's status, body, content type, `Retry-After`, rate limits and Bearer challenge, and no other header.
 *
 * @throws GatewayError 502 when Bun cannot decode the body's encoding
 */
export function relayBuffered(exchange: Exchange, upstream: UpstreamResponse): Response {
  const { body, status, headers } = upstream;
  if (!isDecodable(upstream)) {
    const unreadable = proxyStatus('http_response_content_coding');
    throw new GatewayError(502, 'upstreamInvalid', { headers: unreadable });
  }
  const sent = retryHeaders(headers);
  const contentType = headers.get('content-type');
  if (contentType !== null) sent['content-type'] = contentType;
  sent['cache-control'] = 'no-store';
  sent['content-security-policy'] = CONTENT_SECURITY_POLICY;
  return exchange.respond(body, status, sent);
}
