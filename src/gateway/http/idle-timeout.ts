/** Keeps Bun from closing the connection of a client that waits for the upstream. */

import type { Server } from 'bun';

/** How many seconds a connection may be silent. It is off while a body is streamed, which the gateway watches itself. */
export const IDLE_TIMEOUT_SECONDS = 60;

/** A request, and the server that owns its connection, if there is a socket. */
export interface Connection {
  readonly request: Request;
  readonly server: Pick<Server<unknown>, 'timeout'> | null;
}

/** Certainly before the idle timeout, which Bun counts in coarse steps and which fires late, never early. */
const BEFORE_IDLE_TIMEOUT_MS = IDLE_TIMEOUT_SECONDS * 1000 - 5000;

/**
 * Turns the idle timeout off during the work: Bun's longest, 255 s, is shorter than a generation may take. The timeout
 * belongs to the connection, so it is restored before the response is sent.
 *
 * @param longestMs how long the work may take
 */
export function withoutIdleTimeout<Result>(
  connection: Connection,
  longestMs: number,
  work: () => Promise<Result>,
): Promise<Result> {
  if (longestMs > BEFORE_IDLE_TIMEOUT_MS) {
    const { request, server } = connection;
    server?.timeout(request, 0);
    return work().finally(() => server?.timeout(request, IDLE_TIMEOUT_SECONDS));
  }
  return work();
}
