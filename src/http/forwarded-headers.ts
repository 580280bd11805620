/** Which headers cross the gateway. Whatever is not listed here stays on its side. */

import { GatewayError } from './errors.ts';
import { messages } from './messages.ts';

/** What the proxy passes on as it is. */
const FORWARDED_REQUEST_HEADERS = [
  'accept',
  'accept-language',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
];

/** What a script on the studio's origin may send; how a request is traced is decided in trace-context.ts. */
export const REQUEST_HEADERS = [...FORWARDED_REQUEST_HEADERS, 'traceparent', 'tracestate', 'x-request-id'];

const GENERATION_HEADERS = ['Content-Disposition', 'X-Generation-Id', 'X-Music-Creation-Id'];

const RESPONSE_HEADERS = new Set([
  'accept-ranges',
  'age',
  'cache-control',
  'content-encoding',
  'content-language',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'link',
  'location',
  'retry-after',
  ...GENERATION_HEADERS.map((name) => name.toLowerCase()),
]);

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL_CHARACTER = /[\x00-\x08\x0a-\x1f\x7f]/;

/** `RateLimit`, `RateLimit-Policy`, `X-RateLimit-Remaining` and their like. */
const RATE_LIMIT = /^(x-)?ratelimit/;

/** What a script on the studio's origin may read besides the headers that are always readable. */
export const EXPOSED_HEADERS = [
  ...GENERATION_HEADERS,
  'Accept-Ranges',
  'Age',
  'Content-Encoding',
  'Content-Range',
  'ETag',
  'Link',
  'Location',
  'RateLimit',
  'RateLimit-Policy',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Proxy-Status',
  'Retry-After',
  'Server-Timing',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-Request-Id',
];

/**
 * A header that is forwarded unchanged; null when it is not there.
 *
 * @throws GatewayError 400 when it holds a control character, which Bun lets through (RFC 9110 section 5.5)
 */
export function forwardedRequestHeader({ headers }: Request, name: string): string | null {
  const value = headers.get(name);
  if (value !== null && CONTROL_CHARACTER.test(value)) throw new GatewayError(400, messages.requestInvalid);
  return value;
}

export function forwardedRequestHeaders(request: Request): Record<string, string> {
  const forwarded: Record<string, string> = {};
  for (const name of FORWARDED_REQUEST_HEADERS) {
    const value = forwardedRequestHeader(request, name);
    if (value !== null) forwarded[name] = value;
  }
  return forwarded;
}

/** By name, in lower case; as a record, because building `Headers` costs a crossing into native code for each. */
export function forwardedResponseHeaders(headers: Headers): Record<string, string> {
  const forwarded: Record<string, string> = {};
  headers.forEach((value, name) => {
    if (RESPONSE_HEADERS.has(name) || RATE_LIMIT.test(name)) forwarded[name] = value;
  });
  return forwarded;
}

export function generationHeaders(headers: Headers): Record<string, string> {
  const forwarded: Record<string, string> = {
    'content-type': headers.get('content-type') ?? 'audio/mpeg',
    'cache-control': 'no-store',
  };
  for (const name of GENERATION_HEADERS) {
    const value = headers.get(name);
    if (value !== null) forwarded[name] = value;
  }
  return forwarded;
}
