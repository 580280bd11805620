/** The origin rule: only the studio's own origins may use the gateway. */

/**
 * Whether `Origin` is there and is, letter by letter, an allowed origin.
 *
 * @see RFC 6454 section 7
 */
export function hasAllowedOrigin({ headers }: Request, allowedOrigins: ReadonlySet<string>): boolean {
  const origin = headers.get('origin');
  return origin !== null && allowedOrigins.has(origin);
}
