/** Keeps requests that are responded to at once from delaying all others. */

/**
 * While 1,024 sockets are ready, Bun polls up to 48 times before it gives fetches and timers a turn. Clients that repeat
 * what is refused at once would delay those by seconds.
 *
 * @see https://github.com/oven-sh/bun `us_internal_drain_ready_polls` in packages/bun-usockets/src/eventing/epoll_kqueue.c
 */
const REQUESTS_A_TURN = 512;

export class FairTurns {
  #left = REQUESTS_A_TURN;
  #nextTurn: Promise<void> | undefined;

  /** Handles the request at once or, when many have been, in the next turn of the event loop. */
  handle(work: () => unknown): unknown {
    if (this.#nextTurn) return this.#nextTurn.then(work);
    if (--this.#left === 0) {
      this.#nextTurn = new Promise((resolve) => {
        setImmediate(() => {
          this.#left = REQUESTS_A_TURN;
          this.#nextTurn = undefined;
          resolve();
        });
      });
    }
    return work();
  }
}
