/** Reads `Connection`, which names the headers that are for one hop only. */

/** The usual values of `Connection`, which name no header that the gateway forwards. */
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
