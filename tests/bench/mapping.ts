/** What every contender has to do with a request, in one place: each gets it by its environment or its configuration. */

export const ORIGIN = 'https://studio.example';
export const FOREIGN_ORIGIN = 'https://elsewhere.example';

/** As long as a small signed token is. */
export const ACCESS_TOKEN = `fresh.${'eyJhbGciOiJFUzI1NiJ9'.repeat(20)}`;
/** The upstream answers 401 to it. */
export const EXPIRED_TOKEN = `expired.${'eyJhbGciOiJFUzI1NiJ9'.repeat(20)}`;
export const ACCESS_COOKIE = 'svc_music_access';
export const REFRESH_COOKIE = 'svc_music_refresh';
export const SIGNED_IN = `${ACCESS_COOKIE}=${ACCESS_TOKEN}; ${REFRESH_COOKIE}=refresh-1`;

/** The gateway's paths and the upstream's that they stand for; whatever is below the last one goes to `/v1/`. */
export const PATHS = {
  '/api/music/models': '/v1/models',
  '/api/auth/session': '/v1/me',
  '/api/music/generate': '/v1/music',
} as const;
export const PROXY_PREFIX = '/api/upstream';

export const REQUEST_HEADERS = [
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
  'traceparent',
  'tracestate',
];

export const RESPONSE_HEADERS = [
  'accept-ranges',
  'age',
  'cache-control',
  'content-disposition',
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
  'x-generation-id',
  'x-music-creation-id',
];

/** What the upstream sends besides, and no browser may see; a proxy that has no list of what passes hides these. */
export const HIDDEN_HEADERS = ['set-cookie', 'x-internal', 'server'];

export const EXPOSED_HEADERS = [
  'Content-Disposition',
  'X-Generation-Id',
  'X-Music-Creation-Id',
  'Accept-Ranges',
  'Content-Range',
  'ETag',
  'Retry-After',
];

/** Until the upstream's headers are there: a generation or proxied call, and a read. */
export const STREAM_TIMEOUT_MS = 280_000;
export const READ_TIMEOUT_MS = 15_000;

/** For the contenders that are programs of ours. */
export function mappingEnvironment(upstreamPort: number): Record<string, string> {
  return {
    UPSTREAM_URL: upstreamUrl(upstreamPort),
    ALLOWED_ORIGINS: ORIGIN,
    MAPPING: JSON.stringify({
      paths: PATHS,
      proxyPrefix: PROXY_PREFIX,
      accessCookie: ACCESS_COOKIE,
      requestHeaders: REQUEST_HEADERS,
      responseHeaders: RESPONSE_HEADERS,
      exposedHeaders: EXPOSED_HEADERS,
      streamTimeoutMs: STREAM_TIMEOUT_MS,
      readTimeoutMs: READ_TIMEOUT_MS,
    }),
  };
}

export function upstreamUrl(port: number): string {
  return `http://127.0.0.1:${port}`;
}
