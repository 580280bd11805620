/** Keeps connections to other servers for the next calls, but not for long, because a server may move or disappear. */

/** With the 30 s that Bun remembers an address, less than a minute. */
const KEPT_FOR_SECONDS = 25;

export class KeptConnections {
  #pool = new Bun.FetchSession();
  #until = 0;

  /** The pool of this moment. The calls of an earlier one end there, and its connections with them or soon after. */
  pool(): Bun.FetchSession {
    const now = performance.now();
    if (now >= this.#until) {
      this.#pool.close();
      this.#pool = new Bun.FetchSession({ keepAlive: { idleTimeout: KEPT_FOR_SECONDS } });
      this.#until = now + KEPT_FOR_SECONDS * 1000;
    }
    return this.#pool;
  }
}
