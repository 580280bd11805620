/** Reads the response to a generation: a track, which is paid for, or an error. */

import type { ResponseMemory } from '../admission/response-memory.ts';
import type { Body } from '../http/body.ts';
import type { Settings } from '../settings/settings.ts';
import { awaitFirstByte, type BodyMode, fitsOneWrite, readWhole } from './body-modes.ts';
import { type Deadline, expire } from './deadline.ts';
import { readStart } from './error-message.ts';
import { declaredLength, isSuccess } from './upstream-response.ts';

type Times = Pick<Settings['timeouts'], 'streamMs' | 'readMs'>;

/** No Content, Reset Content, Partial Content. */
const NO_TRACK_STATUSES = new Set([204, 205, 206]);

/**
 * The body of a track is passed on in chunks, and the deadline ends with its first byte. The text of an error is read
 * when the call returns, because the session then sets its cookies; a refresh need not wait for that of a 401. A success
 * without a body, and a partial one (206), are invalid.
 */
export class GeneratedTrack implements BodyMode {
  readonly isDecoded = false;
  /** Resolves when a track that no client gets has come to its end; undefined for any other. */
  discarded: Promise<void> | undefined;
  readonly #memory: Pick<ResponseMemory, 'admitTrack'>;
  readonly #timeouts: Times;
  #mayRefresh: boolean;

  /**
   * @param memory is asked for memory before the track is read. When there is none, the track is discarded as it arrives,
   *   because it is paid for and the upstream has to finish it
   * @param timeouts of a discarded track, and of the text of an error
   * @param mayRefresh whether a refresh may follow a 401 to the first call
   */
  constructor(memory: Pick<ResponseMemory, 'admitTrack'>, timeouts: Times, mayRefresh: boolean) {
    this.#memory = memory;
    this.#timeouts = timeouts;
    this.#mayRefresh = mayRefresh;
  }

  read(response: Response, deadline: Deadline): Body | Promise<Body | undefined> | undefined {
    const { status, headers } = response;
    if (!isSuccess(response)) return fitsOneWrite(response) ? readWhole(response) : this.#readError(response);
    if (NO_TRACK_STATUSES.has(status)) return undefined;
    const isAdmitted = this.#memory.admitTrack(declaredLength(headers), deadline.signal);
    return isAdmitted instanceof Promise
      ? isAdmitted.then((isLate) => this.#begin(response, deadline, isLate))
      : this.#begin(response, deadline, isAdmitted);
  }

  #begin(response: Response, deadline: Deadline, isAdmitted: boolean): Body | Promise<Body | undefined> {
    if (!isAdmitted) {
      this.discarded = this.#discard(response, deadline);
      return null;
    }
    const begun = fitsOneWrite(response) ? readWhole(response) : awaitFirstByte(response.body);
    return begun.then((body) => body ?? undefined);
  }

  #readError({ status, body }: Response): Body | Promise<Body> {
    const reader = body?.getReader() ?? null;
    const isRepeated = status === 401 && this.#mayRefresh;
    this.#mayRefresh = false;
    return isRepeated ? reader && { reader } : readStart(reader, this.#timeouts.readMs);
  }

  /** The body never becomes a JavaScript object, so that it takes little memory. */
  #discard(response: Response, deadline: Deadline): Promise<void> {
    const longest = setTimeout(expire, this.#timeouts.streamMs, deadline);
    const end = () => clearTimeout(longest);
    return Bun.write('/dev/null', response).then(end, end);
  }
}
