/** Reads the response to a proxied call, whose head waits unread until there is memory for the body. */

import { priceOfSlices, priceOfStream } from '../admission/prices.ts';
import type { ResponseMemory } from '../admission/response-memory.ts';
import { type Body, isStreamed } from '../http/body.ts';
import { SILENCE_MS } from '../http/body-reader.ts';
import { awaitFirstByte, type BodyMode, fitsOneWrite, readWhole } from './body-modes.ts';
import type { Deadline } from './deadline.ts';
import type { PaidTrack } from './paid-track.ts';
import { cancelBody, declaredLength, type UpstreamResponse } from './upstream-response.ts';

type Memory = Pick<ResponseMemory, 'headArrived' | 'learn' | 'reserveBody'>;

/**
 * The body is passed on in chunks; only a small one is in memory when the call returns, within its deadline. For others
 * the deadline ends with the head, and the first byte may follow within {@link SILENCE_MS}.
 */
export class RelayedBody implements BodyMode {
  readonly isDecoded = false;
  readonly #memory: Memory;
  readonly #signal: AbortSignal;
  readonly #track: PaidTrack | undefined;

  /**
   * @param signal that of the client
   * @param track reads the body of a generation instead, also an error, which is not kept waiting for memory
   */
  constructor(memory: Memory, signal: AbortSignal, track?: PaidTrack) {
    this.#memory = memory;
    this.#signal = signal;
    this.#track = track;
  }

  read(response: Response, deadline: Deadline): Body | Promise<Body | undefined> | undefined {
    const { status, headers, body } = response;
    if (fitsOneWrite(response)) return readWhole(response);
    // A refresh need not wait for the body of a 401.
    if (status === 401) return body && { rest: body.getReader() };
    // A HEAD and a 304 name the length of a body that they do not have.
    if (!body) return null;
    if (this.#track) return this.#track.read(response, deadline);
    const length = declaredLength(headers);
    this.#memory.headArrived(length, status);
    const waiting = this.#memory.reserveBody(priceOfStream(length), length, this.#signal);
    if (!waiting) return this.#begin(response, deadline);
    deadline.pause();
    return waiting.then(() => this.#begin(response, deadline));
  }

  #begin({ status, body }: Response, deadline: Deadline): Promise<Body> {
    deadline.restart(SILENCE_MS);
    return awaitFirstByte(body).then((begun) => {
      this.#memory.learn(begun?.firstChunk?.byteLength ?? 0, status);
      return begun;
    });
  }
}

/**
 * Reserves what {@link RelayedBody} could not price: a small body, one in slices, and that of a 401. Without memory, the body is cancelled.
 *
 * @throws GatewayError as {@link ResponseMemory.reserveBody} does
 */
export function admitBody(
  memory: ResponseMemory,
  upstream: UpstreamResponse,
  sliceBytes: number,
  signal: AbortSignal,
): Promise<void> | undefined {
  const { body, status, isSliced } = upstream;
  if (!isStreamed(body)) {
    memory.arrivedWhole(body?.byteLength ?? 0, status);
    return undefined;
  }
  if (!isSliced && status !== 401) return undefined;
  memory.headArrived(Number.POSITIVE_INFINITY, status);
  const price = isSliced ? priceOfSlices(sliceBytes) : priceOfStream(Number.POSITIVE_INFINITY);
  const refuse = async (refusal: unknown) => {
    await cancelBody(upstream);
    throw refusal;
  };
  try {
    return memory.reserveBody(price, Number.POSITIVE_INFINITY, signal)?.catch(refuse);
  } catch (refusal) {
    return refuse(refusal);
  }
}
