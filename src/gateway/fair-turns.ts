/** Puts off requests after the first 512 of a turn of the event loop, so that quick refusals do not delay all others. */

/**
 * While 1,024 sockets are ready, Bun polls up to 48 times before it gives fetches and timers a turn. Clients that repeat
 * what is refused at once would delay those by seconds.
 *
 * @see https://github.com/oven-sh/bun `us_internal_drain_ready_polls` in packages/bun-usockets/src/eventing/epoll_kqueue.c
 */
const REQUESTS_A_TURN = 512;

export class FairTurns {
  #left = REQUESTS_A_TURN;

  /**
   * Handles the request at once or, when many have been, in the next turn of the event loop. There each runs until it has
   * to wait before the next one begins: a body that has arrived is read, and is not dropped to make room for those that
   * come.
   */
  handle(request: Request, respond: (request: Request) => unknown): unknown {
    if (this.#left === 0) return new Promise<void>(setImmediate).then(() => respond(request));
    if (--this.#left === 0)
      setImmediate(() => {
        this.#left = REQUESTS_A_TURN;
      });
    return respond(request);
  }
}
