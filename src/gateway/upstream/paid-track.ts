/** Reads a track, which is paid for: it is passed on, or read to its end when there is no memory for that. */

import type { ResponseMemory } from '../admission/response-memory.ts';
import type { Body } from '../http/body.ts';
import { SILENCE_MS } from '../http/body-reader.ts';
import { awaitFirstByte, fitsOneWrite, readWhole } from './body-modes.ts';
import { type Deadline, expire } from './deadline.ts';
import { declaredLength } from './upstream-response.ts';

/** The body is passed on in chunks, and the call's deadline ends with its first byte. */
export class PaidTrack {
  /** Resolves when a track that no client gets has come to its end; undefined for any other. */
  drained: Promise<void> | undefined;
  readonly #memory: Pick<ResponseMemory, 'admitTrack'>;
  readonly #drainMs: number;

  /**
   * @param memory is asked for memory before the track is read. When there is none, the track is drained, because the
   *   upstream has to finish it
   * @param drainMs how long that may take
   */
  constructor(memory: Pick<ResponseMemory, 'admitTrack'>, drainMs: number) {
    this.#memory = memory;
    this.#drainMs = drainMs;
  }

  /** Returns null for a track that is drained, or has no byte. */
  read(response: Response, deadline: Deadline): Body | Promise<Body> {
    const isAdmitted = this.#memory.admitTrack(declaredLength(response.headers), deadline.signal);
    if (!(isAdmitted instanceof Promise)) return this.#begin(response, deadline, isAdmitted);
    // The upstream is not late while the gateway makes it wait.
    deadline.pause();
    return isAdmitted.then((isServed) => {
      deadline.restart(SILENCE_MS);
      return this.#begin(response, deadline, isServed);
    });
  }

  #begin(response: Response, deadline: Deadline, isAdmitted: boolean): Body | Promise<Body> {
    if (isAdmitted) return fitsOneWrite(response) ? readWhole(response) : awaitFirstByte(response.body);
    this.drained = this.#drain(response, deadline);
    return null;
  }

  /** The body never becomes a JavaScript object, so that it takes little memory. */
  #drain(response: Response, deadline: Deadline): Promise<void> {
    const longest = setTimeout(expire, this.#drainMs, deadline);
    const end = () => clearTimeout(longest);
    return Bun.write('/dev/null', response).then(end, end);
  }
}
