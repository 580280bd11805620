/** The mapping as plain functions, for the contenders that are programs of ours, on Bun and on Node. */

import mapping from '../mapping.json' with { type: 'json' };

export const HOST = process.env.HOST;
export const PORT = Number(process.env.PORT);
export const UPSTREAM_URL = process.env.UPSTREAM_URL;
export const ORIGINS = new Set([mapping.origin]);
/** From the gateway's path to the upstream's. */
export const PATHS = mapping.paths;
export const PROXY_PREFIX = mapping.proxyPrefix;
export const EXPOSED_HEADERS = mapping.exposedHeaders;
export const STREAM_TIMEOUT_MS = mapping.streamTimeoutMs;
export const READ_TIMEOUT_MS = mapping.readTimeoutMs;

const EXPOSED_HEADER_LIST = EXPOSED_HEADERS.join(', ');
const RESPONSE_HEADERS = new Set(mapping.responseHeaders);
const COOKIE = new RegExp(`(?:^|;\\s*)${mapping.accessCookie}=([^;]*)`);

/** Undefined without the cookie. */
export function accessToken(cookieHeader) {
  const [, value] = COOKIE.exec(cookieHeader ?? '') ?? [];
  return value ? decodeURIComponent(value) : undefined;
}

/** The listed request headers and the token; `get` gives the value of a header, if there is one. */
export function requestHeaders(get, token) {
  const forwarded = { authorization: `Bearer ${token}` };
  for (const name of mapping.requestHeaders) {
    const value = get(name);
    if (typeof value === 'string') forwarded[name] = value;
  }
  return forwarded;
}

/** Sets the listed response headers, for Headers objects on Bun. */
export function copyResponseHeaders(from, to) {
  for (const name of mapping.responseHeaders) {
    const value = from.get(name);
    if (value !== null) to.set(name, value);
  }
}

export function isForwardedResponseHeader(name) {
  return RESPONSE_HEADERS.has(name);
}

export function corsHeaders(origin) {
  const headers = { vary: 'Origin', 'x-content-type-options': 'nosniff' };
  if (!ORIGINS.has(origin)) return headers;
  return {
    ...headers,
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': EXPOSED_HEADER_LIST,
  };
}
