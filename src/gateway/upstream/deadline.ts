/** Aborts a call to another server that is late, or whose client has disconnected. */

export class Deadline extends AbortController {
  readonly #client: AbortSignal | undefined;
  #timer: Timer;

  /** @param client its signal, for a call that is useless once the client has disconnected */
  constructor(timeoutMs: number, client: AbortSignal | undefined) {
    super();
    this.#timer = setTimeout(this.expire, timeoutMs);
    this.#client = client;
    client?.addEventListener('abort', this.#onClientGone);
    if (client?.aborted) this.#onClientGone();
  }

  readonly expire = (): void => this.abort(new DOMException('deadline exceeded', 'TimeoutError'));
  readonly #onClientGone = (): void => this.abort(this.#client?.reason);

  restart(timeoutMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.expire, timeoutMs);
  }

  /** Lets the rest of the body take its time, which AbortSignal.timeout and AbortSignal.any would not. */
  end(): void {
    clearTimeout(this.#timer);
    this.#client?.removeEventListener('abort', this.#onClientGone);
  }
}
