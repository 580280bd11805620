/** Decides which headers cross the gateway. Headers that are not listed here are dropped. */

import { namedByConnection } from '../record/trace-context.ts';
import { bearerChallenge } from './bearer-challenge.ts';
import { GatewayError } from './errors.ts';

/** The request headers that the proxy forwards unchanged. */
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

/** The gateway's name in `Via`, as in `Proxy-Status`. */
const VIA = '1.1 music-gateway';
/** Printable ASCII, at most 1 KB. */
const SANE_VIA = /^[\t\x20-\x7e]{1,1024}$/;

/** The headers that a script on the studio's origin may send. trace-context.ts decides which tracing ids are used. */
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

/** Matches `RateLimit`, `RateLimit-Policy`, `X-RateLimit-Remaining` and similar names. */
const RATE_LIMIT = /^(x-)?ratelimit/;

/** The headers that a script on the studio's origin may read, besides those that are always readable. */
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
  'WWW-Authenticate',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-Request-Id',
];
const LISTED = new Set(EXPOSED_HEADERS.map((name) => name.toLowerCase()));

/**
 * Returns the value of a header that is forwarded unchanged; null when it is absent.
 *
 * @throws GatewayError 400 when the value contains a control character, which Bun accepts (RFC 9110 section 5.5)
 */
export function forwardedRequestHeader({ headers }: Request, name: string): string | null {
  const value = headers.get(name);
  if (value !== null && CONTROL_CHARACTER.test(value)) throw new GatewayError(400, 'requestInvalid');
  return value;
}

/**
 * Returns the request headers that the proxy sends to the upstream.
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
  // A player cannot use a range of an encoded body, and a client could combine ranges of different encodings.
  if (forwarded['range'] !== undefined) forwarded['accept-encoding'] = 'identity';
  forwarded['via'] = forwarded['via'] === undefined ? VIA : `${forwarded['via']}, ${VIA}`;
  return forwarded;
}

/** Headers by lower-case name. A plain record, because each access to `Headers` crosses into native code. */
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
    else if (name === 'www-authenticate') addChallenge(value, forwarded);
  });
  dropNamed(connection, forwarded);
  if (hasRateLimits) exposeRateLimits(forwarded);
  return forwarded;
}

/** Drops the headers that `Connection` names, because they apply to one hop only. */
function dropNamed(connection: string | null, headers: Record<string, string>): void {
  for (const name of namedByConnection(connection)) delete headers[name];
}

/**
 * Lets scripts read the rate-limit headers that the response has and {@link EXPOSED_HEADERS} does not list. Each is named,
 * because `*` has no meaning for requests with credentials in CORS.
 *
 * @param headers the headers of the response, by lower-case name
 */
function exposeRateLimits(headers: Record<string, string>): void {
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

/** The headers that tell the client when it may send the next request, and which sign-in that needs. */
export function conditionHeaders(headers: Headers): Record<string, string> {
  const forwarded: Record<string, string> = {};
  headers.forEach((value, name) => {
    if (name === 'retry-after' || RATE_LIMIT.test(name)) forwarded[name] = value;
    else if (name === 'www-authenticate') addChallenge(value, forwarded);
  });
  exposeRateLimits(forwarded);
  return forwarded;
}

function addChallenge(header: string, forwarded: Record<string, string>): void {
  const challenge = bearerChallenge(header);
  if (challenge !== undefined) forwarded['www-authenticate'] = challenge;
}
