/** Keeps Bun from cutting a client that waits for the upstream. */

import type { Server } from 'bun';

/** How long a connection may be silent, in seconds; a reader that stalls in mid-answer is cut after it. */
export const IDLE_TIMEOUT_SECONDS = 60;

/** A request and the server that holds its connection; null when there is no socket. */
export interface Connection {
  readonly request: Request;
  readonly server: Pick<Server<unknown>, 'timeout'> | null;
}

/** The shortest idle timeout, after which a connection is closed whose reader does not go on. */
const CUT_SECONDS = 1;

/** Closes a connection whose reader is too slow, within seconds, unless it goes on reading. */
export function cutSoon({ request, server }: Connection): void {
  server?.timeout(request, CUT_SECONDS);
}

/** Work that is over by then does not meet the timeout, which fires late rather than early. */
const SHORT_WORK_MS = IDLE_TIMEOUT_SECONDS * 1000 - 5000;

/**
 * Bun closes a silent connection after at most 255 s, less than a generation may take to answer.
 * The change sticks to the connection, so it is undone before the answer leaves. It costs 3 us: short work does without.
 *
 * @param longestMs how long the work may take
 */
export function withoutIdleTimeout<Result>(
  connection: Connection,
  longestMs: number,
  work: () => Promise<Result>,
): Promise<Result> {
  return longestMs <= SHORT_WORK_MS ? work() : workWithout(connection, work);
}

async function workWithout<Result>(
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
