/** The mapping as plain functions, for the contenders that are JavaScript, most of which run on Node. */

const environment = (name) => process.env[name] ?? '';

export const PORT = Number(environment('PORT'));
export const UPSTREAM_URL = environment('UPSTREAM_URL');
export const ORIGINS = new Set(environment('ALLOWED_ORIGINS').split(','));

const mapping = JSON.parse(environment('MAPPING'));

/** Of the gateway's path, the upstream's. */
export const PATHS = mapping.paths;
export const PROXY_PREFIX = mapping.proxyPrefix;
export const EXPOSED_HEADERS = mapping.exposedHeaders;
export const TIMEOUT_MS = mapping.streamTimeoutMs;
const RESPONSE_HEADERS = new Set(mapping.responseHeaders);
const COOKIE = new RegExp(`(?:^|;\\s*)${mapping.accessCookie}=([^;]*)`);

/** Undefined when there is none. */
export function accessToken(cookieHeader) {
  const [, value] = COOKIE.exec(cookieHeader ?? '') ?? [];
  return value ? decodeURIComponent(value) : undefined;
}

/** Those that pass, of Node's header object, and the token. */
export function requestHeaders(headers, token) {
  const passed = { authorization: `Bearer ${token}` };
  for (const name of mapping.requestHeaders) {
    if (headers[name] !== undefined) passed[name] = headers[name];
  }
  return passed;
}

/** Those that pass, of Node's header object. */
export function responseHeaders(headers) {
  const passed = {};
  for (const name of Object.keys(headers)) {
    if (RESPONSE_HEADERS.has(name)) passed[name] = headers[name];
  }
  return passed;
}

export function isListed(name) {
  return RESPONSE_HEADERS.has(name);
}

export function corsHeaders(origin) {
  const common = { vary: 'Origin', 'x-content-type-options': 'nosniff' };
  if (!ORIGINS.has(origin)) return common;
  return {
    ...common,
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': EXPOSED_HEADERS.join(', '),
  };
}
