/** The failure of a generation whose response is a text, such as the job of an upstream that makes the track later. */

import type { Generation } from './generation.ts';
import type { BegunTrack } from './send-order.ts';
import { watchBody } from './watched-body.ts';

const TEXT = /^(?:text\/|application\/(?:[\w.-]+\+)?json\b|application\/xhtml\+xml\b)/i;
/** Enough to recognise a job or an error page by. */
const SHOWN_BYTES = 1_024;

export class NotAudioError extends Error {
  override readonly name = 'NotAudioError';
  readonly code = 'not_audio';
  readonly contentType: string;
  /** The first kilobyte of the response, for the developer. */
  readonly beginning: string;
  readonly creationId: string | null;

  constructor(
    { contentType, creationId }: Pick<Generation, 'contentType' | 'creationId'>,
    beginning: string,
  ) {
    super(`The response to the generation is not audio, but ${contentType}.`);
    this.contentType = contentType;
    this.creationId = creationId;
    this.beginning = beginning;
  }
}

/** @throws NotAudioError for a text, or the signal's reason when it is aborted. Leaves the connection open. */
export async function refuseText(
  track: BegunTrack,
  watch: { readonly stallMs: number; readonly signal: AbortSignal },
): Promise<void> {
  if (!TEXT.test(track.contentType)) return;
  const body = watchBody(track.body, watch);
  const decoder = new TextDecoder();
  let beginning = '';
  for (let room = SHOWN_BYTES; room > 0; ) {
    // After a break, what has arrived has to do.
    const piece = await body.next().catch(() => undefined);
    if (!piece) break;
    beginning += decoder.decode(piece.subarray(0, room), { stream: true });
    room -= piece.length;
  }
  watch.signal.throwIfAborted();
  throw new NotAudioError(track, beginning);
}
