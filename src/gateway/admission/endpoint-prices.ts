/** Learns for each endpoint of the upstream how much its responses have when their head arrives. */

import { LEAST_READ_AHEAD_BYTES, UNREAD_BYTES } from './prices.ts';

/** How much of the difference to the latest response is learned: a price that is too low costs more than one too high. */
const RISE = 1 / 2;
const FALL = 1 / 16;
/** A response may have twice as much as usual. */
const MARGIN = 2;
/** An upstream has a few dozen. The ones that are called least are forgotten; anybody can call one that does not exist. */
const MOST_ENDPOINTS = 1000;
const MOST_CHARACTERS = 200;
/** A segment with a digit, or a long one, is an id or the name of something. */
const ID = /(?<=\/)(?:[^/]*\d[^/]*|[^/]{24,})/g;

/** A method and a path. */
export class Endpoint {
  readonly #unknownBytes: number;
  #usualBytes: number | undefined;
  /** Whether it has responded, if only with an error. */
  isKnown = false;
  /** How many calls wait for the head of their response. */
  waiting = 0;

  /** @param unknownBytes the price until a call has succeeded */
  constructor(unknownBytes: number) {
    this.#unknownBytes = unknownBytes;
  }

  get hasSucceeded(): boolean {
    return this.#usualBytes !== undefined;
  }

  /** What a call reserves for its response, in bytes, until the head arrives. */
  get price(): number {
    if (this.#usualBytes === undefined) return this.#unknownBytes;
    return Math.min(UNREAD_BYTES, Math.max(LEAST_READ_AHEAD_BYTES, Math.ceil(MARGIN * this.#usualBytes)));
  }

  /**
   * @param bytes what a response had when its head arrived; more than can have arrived counts as that
   * @param status its status. An error, which takes no good token, says nothing of what a success has.
   */
  learn(bytes: number, status: number): void {
    this.isKnown = true;
    if (status >= 400) return;
    const arrived = Math.min(bytes, UNREAD_BYTES);
    const usual = this.#usualBytes ?? arrived;
    this.#usualBytes = usual + (arrived - usual) * (arrived > usual ? RISE : FALL);
  }
}

export class EndpointPrices {
  /** In both, the one that was called last is the last. */
  readonly #known = new Map<string, Endpoint>();
  readonly #unknown = new Map<string, Endpoint>();

  /**
   * @param path of the upstream, without its query
   * @param unknownBytes the price of one at which no call has succeeded yet
   */
  of(method: string, path: string, unknownBytes: number): Endpoint {
    // Without the version of the API.
    const key = method + path.slice(3, MOST_CHARACTERS).replace(ID, '*');
    const endpoint = this.#known.get(key) ?? this.#unknown.get(key) ?? new Endpoint(unknownBytes);
    this.#known.delete(key);
    this.#unknown.delete(key);
    const endpoints = endpoint.hasSucceeded ? this.#known : this.#unknown;
    endpoints.set(key, endpoint);
    if (endpoints.size > MOST_ENDPOINTS) endpoints.delete(endpoints.keys().next().value ?? '');
    return endpoint;
  }
}
