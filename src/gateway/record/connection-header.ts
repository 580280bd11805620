/** Parses which headers a `Connection` header limits to one hop. It is in `trace` because both record ids and http use it. */

/** The usual values, which name no header that the gateway forwards. */
const USUAL_CONNECTIONS = new Set(['keep-alive', 'close']);

/**
 * Returns the header names in a `Connection` header, in lower case.
 *
 * @see RFC 9110 section 7.6.1
 */
export function namedByConnection(connection: string | null): readonly string[] {
  if (connection === null || USUAL_CONNECTIONS.has(connection)) return [];
  return connection.split(',').map((name) => name.trim().toLowerCase());
}
