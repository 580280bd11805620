/** Learns for each endpoint of the upstream how much its responses have when their head arrives. */

import { LEAST_READ_AHEAD_BYTES, UNREAD_BYTES } from './prices.ts';

/** How much of the difference to the latest response is learned: a price that is too low costs more than one too high. */
const RISE = 1 / 2;
const FALL = 1 / 16;
/** A response may have twice as much as usual. */
const MARGIN = 2;
/** An upstream has a few dozen. The ones that are called least are forgotten. */
const MOST_ENDPOINTS = 1000;
const MOST_CHARACTERS = 200;
/** A segment with a digit, or a long one, is an id or the name of something. */
const ID = /(?<=\/)(?:[^/]*\d[^/]*|[^/]{24,})/g;

/** A method and a path. */
export class Endpoint {
  readonly #unknownBytes: number;
  #usualBytes: number | undefined;
  /** How many calls wait for the head of their response. */
  waiting = 0;

  /** @param unknownBytes the price until it has responded */
  constructor(unknownBytes: number) {
    this.#unknownBytes = unknownBytes;
  }

  get isKnown(): boolean {
    return this.#usualBytes !== undefined;
  }

  /** What a call reserves for its response, in bytes, until the head arrives. */
  get price(): number {
    if (this.#usualBytes === undefined) return this.#unknownBytes;
    return Math.min(UNREAD_BYTES, Math.max(LEAST_READ_AHEAD_BYTES, Math.ceil(MARGIN * this.#usualBytes)));
  }

  /** @param bytes what a response had when its head arrived; more than can have arrived counts as that */
  learn(bytes: number): void {
    const arrived = Math.min(bytes, UNREAD_BYTES);
    const usual = this.#usualBytes ?? arrived;
    this.#usualBytes = usual + (arrived - usual) * (arrived > usual ? RISE : FALL);
  }
}

export class EndpointPrices {
  /** The one that was called last is the last. */
  readonly #endpoints = new Map<string, Endpoint>();

  /**
   * @param path of the upstream, without its query
   * @param unknownBytes the price of one that has not responded yet
   */
  of(method: string, path: string, unknownBytes: number): Endpoint {
    // Without the version of the API.
    const key = method + path.slice(3, MOST_CHARACTERS).replace(ID, '*');
    const endpoint = this.#endpoints.get(key) ?? new Endpoint(unknownBytes);
    this.#endpoints.delete(key);
    this.#endpoints.set(key, endpoint);
    if (this.#endpoints.size > MOST_ENDPOINTS)
      this.#endpoints.delete(this.#endpoints.keys().next().value ?? '');
    return endpoint;
  }
}
