/** Decides which headers cross the gateway, in both directions. Headers that are not listed here are dropped. */

import { bearerChallenge, TOKEN } from './bearer-challenge.ts';
import { namedByConnection } from './connection-header.ts';
import { GatewayError } from './errors.ts';
import { type AddressMapping, mapAddress, mapLinks } from './mapped-addresses.ts';

const names = (list: string) => list.trim().split(/\s+/);

/** The request headers that the proxy forwards unchanged, and that a script may set. */
const FORWARDED_REQUEST_HEADERS = names(`
  accept accept-language cache-control content-encoding content-type idempotency-key if-match if-modified-since
  if-none-match if-range if-unmodified-since incremental last-event-id pragma range`);
/** Browsers set `Accept-Encoding` themselves. */
const SENT_HEADERS = [...FORWARDED_REQUEST_HEADERS, 'accept-encoding'];
/** The headers that a script on the studio's origin may send. trace-context.ts decides which tracing ids are used. */
export const REQUEST_HEADERS = [...FORWARDED_REQUEST_HEADERS, 'traceparent', 'tracestate', 'x-request-id'];
/** What the monitoring of a page adds to its requests. It may be sent, so that they are not refused, and is dropped. */
export const DROPPED_REQUEST_HEADERS = names(`
  baggage sentry-trace x-requested-with x-datadog-origin x-datadog-parent-id x-datadog-sampling-priority
  x-datadog-tags x-datadog-trace-id`);

/** The gateway's name in `Via`, as in `Proxy-Status`. */
const VIA = '1.1 music-gateway';
/** Printable ASCII, at most 1 KB. */
const SANE_VIA = /^[\t\x20-\x7e]{1,1024}$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL_CHARACTER = /[\x00-\x08\x0a-\x1f\x7f]/;

const GENERATION_HEADERS = ['Content-Disposition', 'X-Generation-Id', 'X-Music-Creation-Id'];
/** The response headers that the audio of a generation has. */
const AUDIO_HEADERS = [
  'content-type',
  'content-encoding',
  ...GENERATION_HEADERS.map((name) => name.toLowerCase()),
];
/** Matches `RateLimit`, `RateLimit-Policy`, `X-RateLimit-Remaining` and similar names. */
const RATE_LIMIT = /^(x-)?ratelimit/;
/** The headers that tell a client when it may send the next request, besides the rate limits. */
const RETRY_HEADERS = new Set(['retry-after']);
/** The response headers that the proxy relays, besides the rate limits. */
export const RELAYED_HEADERS: ReadonlySet<string> = new Set([
  ...names(`
    accept-ranges age allow cache-control content-language content-length content-location content-range
    etag expires incremental last-modified link location retry-after vary`),
  ...AUDIO_HEADERS,
]);
/** The headers that a script on the studio's origin may read, besides those that are always readable. */
export const EXPOSED_HEADERS = [
  ...GENERATION_HEADERS,
  ...names(`
    Accept-Ranges Age Allow Content-Encoding Content-Location Content-Range ETag Link Location
    RateLimit RateLimit-Policy RateLimit-Limit RateLimit-Remaining RateLimit-Reset Proxy-Status Retry-After
    Server-Timing WWW-Authenticate X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset X-Request-Id`),
];
const LISTED = new Set(EXPOSED_HEADERS.map((name) => name.toLowerCase()));

/** Keeps HTML from the upstream from running scripts on the origin that has the session cookies. */
export const CONTENT_SECURITY_POLICY = "sandbox; default-src 'none'";

/** Asks proxies to pass each part on as it arrives: nginx, and others. @see RFC 10036 */
const AT_ONCE = { 'x-accel-buffering': 'no', incremental: '?1' } as const;
const EVENT_STREAM = /^text\/event-stream\s*(?:;|$)/i;

/** The gateway's own `Vary`, without which a cache could give one user's response to another. */
export const VARY = { public: 'Origin', session: 'Origin, Cookie' } as const;

/** Directives by which an upstream says what caches may do with the response to a request with `Authorization`. */
const SETTLED = /(?:^|,)\s*(?:public|must-revalidate|s-maxage\s*=[^,]*|private|no-store)\s*(?:,|$)/i;
const QUOTED = /"[^"]*"?/g;

/** How each header with addresses is mapped. A header is dropped when its mapping returns undefined. */
const MAPPED = [
  ['location', mapAddress],
  ['content-location', mapAddress],
  ['link', mapLinks],
] as const;

const FIELD_NAME = new RegExp(`^${TOKEN}$`);

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
  for (const name of SENT_HEADERS) {
    const value = forwardedRequestHeader(request, name);
    if (value !== null) forwarded[name] = value;
  }
  const via = request.headers.get('via');
  if (via !== null && SANE_VIA.test(via)) forwarded['via'] = via;
  dropNamed(request.headers.get('connection'), forwarded);
  // A player cannot use a range of an encoded body, and a client could combine ranges of different encodings.
  if (forwarded['range'] !== undefined) forwarded['accept-encoding'] = 'identity';
  forwarded['via'] = forwarded['via'] === undefined ? VIA : `${forwarded['via']}, ${VIA}`;
  return forwarded;
}

/**
 * Returns the headers with which an upstream's response is relayed by the proxy.
 *
 * @param isGeneration whether a player waits for each part, as for that of an event stream
 */
export function relayedHeaders(
  upstream: Headers,
  mapping: AddressMapping,
  vary: string,
  isGeneration = false,
): Record<string, string> {
  const headers = passing(upstream, RELAYED_HEADERS);
  headers['content-security-policy'] = CONTENT_SECURITY_POLICY;
  headers['vary'] = headers['vary'] === undefined ? vary : mergedVary(vary, headers['vary']);
  if (vary === VARY.session) headers['cache-control'] = unshared(headers['cache-control']);
  for (const [name, map] of MAPPED) {
    const value = headers[name];
    if (value === undefined) continue;
    const mapped = map(value, mapping);
    if (mapped === undefined) delete headers[name];
    else headers[name] = mapped;
  }
  if (isGeneration || EVENT_STREAM.test(headers['content-type'] ?? '')) Object.assign(headers, AT_ONCE);
  return headers;
}

/** Returns the headers of a track, or of the job that makes it, which is found at its `Location`. */
export function trackHeaders(
  { status, headers }: Pick<Response, 'status' | 'headers'>,
  mapping: AddressMapping,
): Record<string, string> {
  const location = status === 202 ? headers.get('location') : null;
  const mapped = location === null ? undefined : mapAddress(location, mapping);
  return { ...generationHeaders(headers), ...AT_ONCE, ...(mapped !== undefined && { location: mapped }) };
}

export function generationHeaders(upstream: Headers): Record<string, string> {
  const headers: Record<string, string> = { 'cache-control': 'no-store' };
  for (const name of AUDIO_HEADERS) {
    const value = upstream.get(name);
    if (value !== null) headers[name] = value;
  }
  dropNamed(upstream.get('connection'), headers);
  headers['content-type'] ??= 'audio/mpeg';
  return headers;
}

/** The headers that tell the client when it may send the next request, and which sign-in that needs. */
export function retryHeaders(upstream: Headers): Record<string, string> {
  return passing(upstream, RETRY_HEADERS);
}

/** The listed headers and the rate limits, by lower-case name, without those that `Connection` names. */
function passing(upstream: Headers, listed: ReadonlySet<string>): Record<string, string> {
  const headers: Record<string, string> = {};
  let hasRateLimits = false;
  upstream.forEach((value, name) => {
    const isRateLimit = RATE_LIMIT.test(name);
    hasRateLimits ||= isRateLimit;
    if (isRateLimit || listed.has(name)) headers[name] = value;
  });
  const challenge = bearerChallenge(upstream.get('www-authenticate'));
  if (challenge !== undefined) headers['www-authenticate'] = challenge;
  dropNamed(upstream.get('connection'), headers);
  if (hasRateLimits) exposeRateLimits(headers);
  return headers;
}

/** Lets scripts read all rate limits. Each is named, because in CORS `*` has no meaning for requests with credentials. */
function exposeRateLimits(headers: Record<string, string>): void {
  const unlisted = Object.keys(headers).filter((name) => RATE_LIMIT.test(name) && !LISTED.has(name));
  if (unlisted.length)
    headers['access-control-expose-headers'] = [...EXPOSED_HEADERS, ...unlisted].join(', ');
}

/** Drops the headers that `Connection` names, because they apply to one hop only. */
function dropNamed(connection: string | null, headers: Record<string, string>): void {
  for (const name of namedByConnection(connection)) delete headers[name];
}

/**
 * Keeps the response to a session out of shared caches, unless the upstream has settled that. They would keep it for its
 * `max-age` or `Last-Modified`, because the client's request has no `Authorization`; most of them ignore `Vary`.
 *
 * @see RFC 9111 section 3.5
 */
function unshared(cacheControl: string | undefined): string {
  if (!cacheControl) return 'private';
  return SETTLED.test(cacheControl.replace(QUOTED, '')) ? cacheControl : `private, ${cacheControl}`;
}

/** @see RFC 9110 section 12.5.5: `*` includes every name. */
function mergedVary(own: string, upstream: string): string {
  const names = new Map<string, string>();
  for (const member of `${own},${upstream}`.split(',')) {
    const name = member.trim();
    if (name === '*') return '*';
    if (FIELD_NAME.test(name) && !names.has(name.toLowerCase())) names.set(name.toLowerCase(), name);
  }
  return [...names.values()].join(', ');
}
