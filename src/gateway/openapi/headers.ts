/** Describes the response headers in the OpenAPI document. */

import { Type } from '@sinclair/typebox';

const schema = Type.String();

function optional(description: string) {
  return { description, schema };
}

/** Describes a header that is present on every such response. */
function always(description: string) {
  return { description, required: true, schema };
}

/** Under these names the document's components list the headers. */
export const HEADERS = {
  Vary: always(
    '`Origin`, and `Cookie` where the response depends on the session. A relayed response also has what the upstream’s `Vary` names, or `*` alone if that is `*`.',
  ),
  NoSniff: always('`nosniff`.'),
  RequestId: always('Identifies the request in the logs of the gateway and of the upstream.'),
  NoStore: always('`no-store`.'),
  ErrorLanguage: optional('`en` or `sw`; absent when the text is the upstream’s.'),
  SessionCookies: optional(
    'A line for each session cookie, `HttpOnly` and, unless `COOKIE_SAME_SITE` is `strict`, `SameSite=Lax`: a new pair, or `Max-Age=0` for a session that has ended or cannot be read.',
  ),
  Refreshed: optional('`refresh` when the session was renewed for this request.'),
  ProxyStatus: optional(
    'What went wrong on the way to the upstream, as in `music-gateway; error=connection_refused` (RFC 9209). With a 401 of the upstream: why the session could not be renewed at this moment; it has not ended.',
  ),
  RetryLater: optional(
    'When to send the request again, in seconds: the gateway had no place for it, or none for the refresh that it needed. Then `Proxy-Status` is `music-gateway; error=connection_limit_reached`; otherwise it is the upstream’s.',
  ),
  Relayed: optional('As the upstream sent it.'),
  RelayedCaching: optional('As the upstream sent it; `no-store` on a response that sets cookies.'),
  RelayedEncoding: optional('As the upstream sent it: the encoded body is relayed unchanged.'),
  RelayedLocation: optional(
    'Rewritten to `/api/upstream/v1/...` when it points below the upstream’s `/v1/`; absent when it points elsewhere on its host.',
  ),
  RelayedLinks: optional(
    'The upstream’s links, with their addresses mapped like `Location`. A link that cannot be parsed, or that points elsewhere on the upstream’s host, is absent.',
  ),
  RelayedLimits: optional('As the upstream sent it, like any other header whose name begins like this.'),
  Sandbox: optional(
    "`sandbox; default-src 'none'` on all relayed responses: the upstream’s HTML must not run here.",
  ),
};

interface Reference {
  readonly $ref: string;
}
export type HeaderMap = Readonly<Record<string, Reference>>;

function header(name: keyof typeof HEADERS): Reference {
  return { $ref: `#/components/headers/${name}` };
}

export const EVERY_RESPONSE: HeaderMap = {
  Vary: header('Vary'),
  'X-Content-Type-Options': header('NoSniff'),
  'X-Request-Id': header('RequestId'),
};

export const NO_STORE: HeaderMap = { 'Cache-Control': header('NoStore') };

export const OWN_ERROR: HeaderMap = {
  ...EVERY_RESPONSE,
  ...NO_STORE,
  'Content-Language': header('ErrorLanguage'),
};

export const SESSION_COOKIES: HeaderMap = { 'Set-Cookie': header('SessionCookies') };

/** Responses for which the upstream may have been called with the session's access token. */
export const SESSION_CALL: HeaderMap = { ...SESSION_COOKIES, 'Server-Timing': header('Refreshed') };

export const PROXY_STATUS: HeaderMap = { 'Proxy-Status': header('ProxyStatus') };

/** Responses that may refuse a request because there is no place for a call. */
export const RETRY_LATER: HeaderMap = { ...PROXY_STATUS, 'Retry-After': header('RetryLater') };

const relayed = header('Relayed');
const limits = header('RelayedLimits');

export const GENERATION: HeaderMap = {
  'Content-Disposition': relayed,
  'X-Generation-Id': relayed,
  'X-Music-Creation-Id': relayed,
};

export const ENCODING: HeaderMap = { 'Content-Encoding': header('RelayedEncoding') };

export const SANDBOX: HeaderMap = { 'Content-Security-Policy': header('Sandbox') };

/** When the client may send the next request, and how many it has left. */
export const LIMITS: HeaderMap = {
  RateLimit: limits,
  'RateLimit-Limit': limits,
  'RateLimit-Policy': limits,
  'RateLimit-Remaining': limits,
  'RateLimit-Reset': limits,
  'Retry-After': relayed,
  'X-RateLimit-Limit': limits,
  'X-RateLimit-Remaining': limits,
  'X-RateLimit-Reset': limits,
};

/** The headers that the proxy passes on. OpenAPI does not allow Content-Type in header maps. */
export const RELAYED: HeaderMap = {
  ...PROXY_STATUS,
  ...GENERATION,
  'Accept-Ranges': relayed,
  Age: relayed,
  Allow: relayed,
  'Cache-Control': header('RelayedCaching'),
  ...ENCODING,
  'Content-Language': relayed,
  'Content-Length': relayed,
  'Content-Location': header('RelayedLocation'),
  'Content-Range': relayed,
  ...SANDBOX,
  ETag: relayed,
  Expires: relayed,
  'Last-Modified': relayed,
  Link: header('RelayedLinks'),
  Location: header('RelayedLocation'),
  ...LIMITS,
};
