/** The target of a request as the client wrote it, without the detour of `new URL`, which can throw. */

/**
 * Path and query.
 *
 * @param requestUrl as the server gives it: absolute, or only the target when the Host header was unusable
 */
export function requestTarget(requestUrl: string): string {
  const authority = requestUrl.indexOf('://');
  return requestUrl.startsWith('/') || authority < 0
    ? requestUrl
    : requestUrl.slice(requestUrl.indexOf('/', authority + 3));
}

export function requestPath(requestUrl: string): string {
  return requestTarget(requestUrl).split('?', 1)[0] ?? '';
}
