/** Which headers cross the gateway. Whatever is not listed here stays on its side. */

import { namedByConnection } from '../trace/connection-header.ts';
import { GatewayError } from './errors.ts';
import { messages } from './messages.ts';

/** What the proxy forwards unchanged. */
const FORWARDED_REQUEST_HEADERS = [
  'accept',
  'accept-language',
  'cache-control',
  'content-encoding',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'pragma',
  'range',
];

/** How the gateway names itself to the upstream, as in `Proxy-Status`. */
const VIA = '1.1 music-gateway';
/** Printable ASCII, of at most 1 KB. */
const SANE_VIA = /^[\t\x20-\x7e]{1,1024}$/;

/** What a script on the studio's origin may send; how a request is traced is decided in trace-context.ts. */
export const REQUEST_HEADERS = [...FORWARDED_REQUEST_HEADERS, 'traceparent', 'tracestate', 'x-request-id'];

const GENERATION_HEADERS = ['Content-Disposition', 'X-Generation-Id', 'X-Music-Creation-Id'];

const RESPONSE_HEADERS = new Set([
  'accept-ranges',
  'age',
  'allow',
  'cache-control',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-range',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'link',
  'location',
  'retry-after',
  'vary',
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
  'Allow',
  'Content-Encoding',
  'Content-Location',
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
const LISTED = new Set(EXPOSED_HEADERS.map((name) => name.toLowerCase()));

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

/**
 * The headers of a request that the proxy sends to the upstream.
 *
 * @see RFC 9110 sections 7.6.1 (Connection), 7.6.3 (Via) and 12.5.3 (Accept-Encoding)
 * @throws GatewayError as {@link forwardedRequestHeader} does
 */
export function forwardedRequestHeaders(request: Request): Record<string, string> {
  const forwarded: Record<string, string> = {};
  for (const name of FORWARDED_REQUEST_HEADERS) {
    const value = forwardedRequestHeader(request, name);
    if (value !== null) forwarded[name] = value;
  }
  const acceptEncoding = forwardedRequestHeader(request, 'accept-encoding');
  if (acceptEncoding !== null) forwarded['accept-encoding'] = acceptEncoding;
  const via = request.headers.get('via');
  if (via !== null && SANE_VIA.test(via)) forwarded['via'] = via;
  dropNamed(request.headers.get('connection'), forwarded);
  // A player cannot use a range of an encoded body, and a client could join ranges of two encodings.
  if (forwarded['range'] !== undefined) forwarded['accept-encoding'] = 'identity';
  forwarded['via'] = forwarded['via'] === undefined ? VIA : `${forwarded['via']}, ${VIA}`;
  return forwarded;
}

/** By name, in lower case; as a record, because building `Headers` costs a crossing into native code for each. */
export function forwardedResponseHeaders(headers: Headers): Record<string, string> {
  const forwarded: Record<string, string> = {};
  let connection: string | null = null;
  let hasRateLimits = false;
  headers.forEach((value, name) => {
    if (RESPONSE_HEADERS.has(name)) forwarded[name] = value;
    else if (RATE_LIMIT.test(name)) {
      forwarded[name] = value;
      hasRateLimits = true;
    } else if (name === 'connection') connection = value;
  });
  dropNamed(connection, forwarded);
  if (hasRateLimits) exposeRateLimits(forwarded);
  return forwarded;
}

/** Drops the headers that `Connection` names, because they are for one hop only. */
function dropNamed(connection: string | null, headers: Record<string, string>): void {
  for (const name of namedByConnection(connection)) delete headers[name];
}

/**
 * Lets scripts read the rate-limit headers of a response that {@link EXPOSED_HEADERS} does not list. The response names
 * each of them, because CORS has no `*` for requests with credentials.
 *
 * @param headers of the response, by name in lower case
 */
export function exposeRateLimits(headers: Record<string, string>): void {
  const unlisted = Object.keys(headers).filter((name) => RATE_LIMIT.test(name) && !LISTED.has(name));
  if (unlisted.length)
    headers['access-control-expose-headers'] = [...EXPOSED_HEADERS, ...unlisted].join(', ');
}

export function generationHeaders(headers: Headers): Record<string, string> {
  const forwarded: Record<string, string> = {
    'content-type': headers.get('content-type') ?? 'audio/mpeg',
    'cache-control': 'no-store',
  };
  for (const name of [...GENERATION_HEADERS, 'Content-Encoding']) {
    const value = headers.get(name);
    if (value !== null) forwarded[name] = value;
  }
  return forwarded;
}

/** The headers that say when the client may send the next request, and how many it has left. */
export function limitHeaders(headers: Headers): Record<string, string> {
  const forwarded: Record<string, string> = {};
  headers.forEach((value, name) => {
    if (name === 'retry-after' || RATE_LIMIT.test(name)) forwarded[name] = value;
  });
  exposeRateLimits(forwarded);
  return forwarded;
}
