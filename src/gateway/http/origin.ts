/** The origin rule: only allowed origins may use the gateway. */

/**
 * Whether `Origin` is present and exactly equals an allowed origin.
 *
 * @see RFC 6454 section 7
 */
export function hasAllowedOrigin({ headers }: Request, allowedOrigins: ReadonlySet<string>): boolean {
  const origin = headers.get('origin');
  return origin !== null && allowedOrigins.has(origin);
}
