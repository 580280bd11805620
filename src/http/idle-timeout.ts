/** Keeps Bun from cutting a client that waits for the upstream. */

import type { Server } from 'bun';

/** How long a connection may be silent, in seconds; a reader that stalls in mid-answer is cut after it. */
export const IDLE_TIMEOUT_SECONDS = 60;

/** A request and the server that holds its connection; null when there is no socket. */
export interface Connection {
  readonly request: Request;
  readonly server: Pick<Server<unknown>, 'timeout'> | null;
}

/**
 * Bun closes a silent connection after at most 255 s, less than a generation may take to answer.
 * The change sticks to the connection, so it is undone before the answer leaves.
 */
export async function withoutIdleTimeout<Result>(
  { request, server }: Connection,
  work: () => Promise<Result>,
): Promise<Result> {
  server?.timeout(request, 0);
  try {
    return await work();
  } finally {
    server?.timeout(request, IDLE_TIMEOUT_SECONDS);
  }
}
