/** The track that disturbed generations are made of, and responses with parts of it. */

import type { Respond } from './gateway-stub.ts';

export const TRACK = Uint8Array.from({ length: 4_000 }, (_, index) => (index * index) % 251);
export const CREATION = { 'x-music-creation-id': 'c-7' };

/** After its bytes, a response ends, breaks off, or brings nothing more on a connection that stays open. */
type Ending = 'ends' | 'breaks' | 'stalls';

export function audio(
  bytes: Uint8Array,
  ending: Ending,
  signal?: AbortSignal | null,
): ReadableStream<Uint8Array> {
  let isSent = bytes.length === 0;
  return new ReadableStream({
    async pull(controller) {
      if (!isSent) controller.enqueue(bytes);
      else if (ending === 'ends') controller.close();
      else if (ending === 'breaks') throw new TypeError('network error');
      else await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
      isSent = true;
    },
  });
}

/** The response to an order, as far as so many bytes. */
export function begun(end: number, ending: Ending = 'breaks'): Respond {
  return ({ signal }) => new Response(audio(TRACK.subarray(0, end), ending, signal), { headers: CREATION });
}

interface Rest {
  /** Where the response is over. */
  readonly end?: number;
  readonly ending?: Ending;
  readonly etag?: string | undefined;
  readonly of?: Uint8Array;
  /** In place of what the range says of the first byte, and of the length. */
  readonly first?: number;
  readonly total?: number | '*';
}

/** The response to a range of the creation, from the byte that was asked for. */
export function rest({ end = TRACK.length, ending = 'ends', of = TRACK, etag, ...said }: Rest = {}): Respond {
  return ({ headers, signal }) => {
    const asked = Number(/^bytes=(\d+)-$/.exec(new Headers(headers).get('range') ?? '')?.[1]);
    const { first = asked, total = TRACK.length } = said;
    const range = { 'content-range': `bytes ${first}-${TRACK.length - 1}/${total}` };
    const body = audio(of.subarray(asked, end), ending, signal);
    return new Response(body, { status: 206, headers: etag === undefined ? range : { ...range, etag } });
  };
}
