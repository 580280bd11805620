/** Reads the response to a generation: a track, which is paid for, or an error. */

import type { Permit } from '../admission/permit.ts';
import type { Body } from '../exchange/observed-body.ts';
import { awaitFirstByte, type BodyMode, fitsOneWrite, readWhole } from './body-modes.ts';
import { type Deadline, expire } from './deadline.ts';
import { declaredLength, isSuccess } from './upstream-response.ts';

/** No Content, Reset Content, Partial Content. */
const NO_TRACK_STATUSES = new Set([204, 205, 206]);

/**
 * The body is passed on in chunks. The deadline ends with the first byte of a track, and with the head of an error, whose
 * text has a deadline of its own. A success without a body, a partial one (206) and a redirect are invalid.
 */
export class GeneratedTrack implements BodyMode {
  readonly isDecoded = false;
  /** Resolves when a track that no client gets has come to its end; undefined for any other. */
  discarded: Promise<void> | undefined;
  readonly #permit: Pick<Permit, 'tryReservePaid'>;
  readonly #paidMs: number;

  /**
   * @param permit reserves memory before the track is read; without it, the track is discarded as it arrives, because it
   *   is paid for and the upstream has to finish it
   * @param paidMs how long that may take
   */
  constructor(permit: Pick<Permit, 'tryReservePaid'>, paidMs: number) {
    this.#permit = permit;
    this.#paidMs = paidMs;
  }

  read(response: Response, deadline: Deadline): Body | Promise<Body | undefined> | undefined {
    const { status, headers, body } = response;
    const isSmall = fitsOneWrite(response);
    if (status >= 400) return isSmall ? readWhole(response) : body && { reader: body.getReader() };
    if (!isSuccess(response) || NO_TRACK_STATUSES.has(status)) return undefined;
    if (!this.#permit.tryReservePaid(declaredLength(headers))) {
      this.discarded = this.#discard(response, deadline);
      return null;
    }
    return (isSmall ? readWhole(response) : awaitFirstByte(body)).then((begun) => begun ?? undefined);
  }

  /** The body never becomes a JavaScript object, so that it takes little memory. */
  #discard(response: Response, deadline: Deadline): Promise<void> {
    const longest = setTimeout(expire, this.#paidMs, deadline);
    const end = () => clearTimeout(longest);
    return Bun.write('/dev/null', response).then(end, end);
  }
}
