/** Decides when an exchange has ended, and keeps Bun from closing its connection before that. */

import { describeCause } from '../http/error-summary.ts';
import { type Exchange, IDLE_TIMEOUT_SECONDS } from './exchange.ts';

/** What follows each exchange from its request to its end. */
interface Observer {
  began(exchange: Exchange): void;
  responded(exchange: Exchange, response: Response): void;
  ended(exchange: Exchange): void;
}

/** Often enough to turn the idle timeout off in time, and seldom enough that short exchanges have ended by then. */
const LOOK_EVERY_MS = (IDLE_TIMEOUT_SECONDS * 1000) / 6;
const CHECK_EVERY_MS = 20;

export class OpenExchanges {
  readonly #open = new Set<Exchange>();
  readonly #observer: Observer;
  #timer: Timer | undefined;

  constructor(observer: Observer) {
    this.#observer = observer;
  }

  /**
   * An exchange ends once, whatever the handler does: with its response or its failure, or later when something keeps it
   * open, such as the body of the response.
   *
   * @param handle responds to the request, synchronously or by a promise
   */
  run(exchange: Exchange, handle: () => unknown): unknown {
    this.#open.add(exchange);
    this.#timer ??= setInterval(() => this.#turnIdleTimeoutsOff(), LOOK_EVERY_MS);
    exchange.observer = this;
    let result: unknown;
    try {
      this.#observer.began(exchange);
      result = handle();
    } catch (error) {
      this.#failed(exchange, error);
    }
    if (!(result instanceof Promise)) return this.#responded(exchange, result);
    return result.then(
      (response) => this.#responded(exchange, response),
      (error) => this.#failed(exchange, error),
    );
  }

  /** How many have not ended. Those of clients that are gone count, too. */
  get size(): number {
    return this.#open.size;
  }

  /** Resolves within {@link CHECK_EVERY_MS} after every exchange has ended. */
  async settled(): Promise<void> {
    while (this.#open.size) await Bun.sleep(CHECK_EVERY_MS);
  }

  /** Ends all that are left, because the process ends. */
  endAll(): void {
    for (const exchange of this.#open) {
      exchange.record.cutOff ??= 'shutdown';
      exchange.end();
    }
  }

  #responded(exchange: Exchange, response: unknown): unknown {
    try {
      if (response instanceof Response) this.#observer.responded(exchange, response);
    } finally {
      exchange.letGo();
    }
    return response;
  }

  #failed(exchange: Exchange, error: unknown): never {
    exchange.record.reason = 'internalError';
    exchange.record.cause = describeCause(error);
    exchange.letGo();
    throw error;
  }

  /** Called by the exchange, once. */
  ended(exchange: Exchange): void {
    this.#open.delete(exchange);
    this.#observer.ended(exchange);
  }

  #turnIdleTimeoutsOff(): void {
    for (const exchange of this.#open) exchange.turnIdleTimeoutOff();
    if (this.#open.size) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
