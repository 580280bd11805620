/** The target of a request as the client wrote it, without the cost and the normalisation of `new URL`. */

/** Path and query. */
export function requestTarget(url: string): string {
  return url.slice(url.indexOf('/', url.indexOf('://') + 3));
}

export function requestPath(url: string): string {
  return requestTarget(url).split('?', 1)[0] ?? '';
}
