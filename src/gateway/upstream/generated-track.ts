/** Reads the response to a generation: a track, which is paid for, or an error. */

import type { Body } from '../http/body.ts';
import type { BodyMode } from './body-modes.ts';
import type { Deadline } from './deadline.ts';
import { readBriefly } from './error-message.ts';
import type { PaidTrack } from './paid-track.ts';
import { isSuccess } from './upstream-response.ts';

/** No Content, Reset Content, Partial Content. */
const NO_TRACK_STATUSES = new Set([204, 205, 206]);

/**
 * The text of an error is read when the call returns, because the session then sets its cookies; a refresh need not wait
 * for that of a 401. A success without a body, and a partial one (206), are invalid.
 */
export class GeneratedTrack implements BodyMode {
  readonly isDecoded = false;
  readonly #track: PaidTrack;
  readonly #errorMs: number;
  #mayRefresh: boolean;

  /**
   * @param errorMs how long the text of an error may take
   * @param mayRefresh whether a refresh may follow a 401 to the first call
   */
  constructor(track: PaidTrack, errorMs: number, mayRefresh: boolean) {
    this.#track = track;
    this.#errorMs = errorMs;
    this.#mayRefresh = mayRefresh;
  }

  read(response: Response, deadline: Deadline): Body | Promise<Body | undefined> | undefined {
    if (!isSuccess(response)) return this.#readError(response);
    return NO_TRACK_STATUSES.has(response.status) ? undefined : this.#readTrack(response, deadline);
  }

  async #readTrack(response: Response, deadline: Deadline): Promise<Body | undefined> {
    const body = await this.#track.read(response, deadline);
    return body ?? (this.#track.drained ? null : undefined);
  }

  #readError({ status, body }: Response): Body | Promise<Body> {
    const rest = body?.getReader() ?? null;
    const isRepeated = status === 401 && this.#mayRefresh;
    this.#mayRefresh = false;
    return isRepeated ? rest && { rest } : readBriefly(rest, this.#errorMs);
  }
}
