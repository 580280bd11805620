/** Reads the response to a generation: a track, which is paid for, or an error. */

import type { Permit } from '../admission/permit.ts';
import type { Body } from '../exchange/observed-body.ts';
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
  readonly #permit: Pick<Permit, 'tryReservePaid'>;
  readonly #timeouts: Times;
  #mayRefresh: boolean;

  /**
   * @param permit is asked for memory before the track is read. When there is none, the track is discarded as it arrives,
   *   because it is paid for and the upstream has to finish it
   * @param timeouts of a discarded track, and of the text of an error
   * @param mayRefresh whether a refresh may follow a 401 to the first call
   */
  constructor(permit: Pick<Permit, 'tryReservePaid'>, timeouts: Times, mayRefresh: boolean) {
    this.#permit = permit;
    this.#timeouts = timeouts;
    this.#mayRefresh = mayRefresh;
  }

  read(response: Response, deadline: Deadline): Body | Promise<Body | undefined> | undefined {
    const { status, headers, body } = response;
    const isSmall = fitsOneWrite(response);
    if (!isSuccess(response)) return isSmall ? readWhole(response) : this.#readError(response);
    if (NO_TRACK_STATUSES.has(status)) return undefined;
    if (!this.#permit.tryReservePaid(declaredLength(headers))) {
      this.discarded = this.#discard(response, deadline);
      return null;
    }
    return (isSmall ? readWhole(response) : awaitFirstByte(body)).then((begun) => begun ?? undefined);
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
