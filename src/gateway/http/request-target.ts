/** The target of a request as the client wrote it: `new URL` would normalise it, and costs more. */

/** Path and query. */
export function requestTarget(url: string): string {
  return url.slice(url.indexOf('/', url.indexOf('://') + 3));
}

export function requestPath(url: string): string {
  const target = requestTarget(url);
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}
