/** Aborts a call to another server that is late, or whose client has disconnected. */

export class Deadline extends AbortController {
  readonly #client: AbortSignal | undefined;
  #timer: Timer;

  /** @param client its signal, for a call that is useless once the client has disconnected */
  constructor(timeoutMs: number, client: AbortSignal | undefined) {
    super();
    this.#timer = setTimeout(expire, timeoutMs, this);
    this.#client = client;
    client?.addEventListener('abort', this);
    if (client?.aborted) this.handleEvent();
  }

  /** The client has disconnected. */
  handleEvent(): void {
    this.abort(this.#client?.reason);
  }

  /** Stops the time of a call whose response waits for the gateway. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  restart(timeoutMs: number): void {
    this.pause();
    this.#timer = setTimeout(expire, timeoutMs, this);
  }

  /** Stops the time until an upload has been sent. An upstream that does not take it is late. */
  ofUpload(timeoutMs: number) {
    this.pause();
    return { onSent: () => this.restart(timeoutMs), onStalled: () => expire(this) };
  }

  /** Lets the rest of the body take its time, which AbortSignal.timeout and AbortSignal.any would not. */
  end(): void {
    this.pause();
    this.#client?.removeEventListener('abort', this);
  }
}

/** For setTimeout, which passes the deadline on: a function of its own would cost each call. */
export function expire(deadline: Deadline): void {
  deadline.abort(new DOMException('deadline exceeded', 'TimeoutError'));
}
