/** Listens, or says why that is not possible. */

import { errorCode } from './error-summary.ts';

/**
 * Listens, and returns the problem if that fails.
 *
 * @param prefix precedes `HOST` and `PORT` in the names of the two settings
 */
export async function listenOrExplain(
  prefix: string,
  port: number | undefined,
  host: string,
  listen: (address: { port: number; hostname: string }) => unknown,
): Promise<string | undefined> {
  if (port === undefined) return undefined;
  try {
    listen({ port, hostname: host });
    return undefined;
  } catch (error) {
    const code = errorCode(error) || error;
    // Imported for this text alone.
    const { isIP } = await import('node:net');
    // Bun also reports EADDRINUSE for a host name that it cannot resolve.
    if (code === 'EADDRINUSE' && isIP(host)) return `port ${port} is taken (${prefix}PORT)`;
    return `cannot listen on ${host}:${port} (${code}, ${prefix}HOST and ${prefix}PORT)`;
  }
}
