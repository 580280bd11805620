/** The body of a response, from the upstream to the client. */

import type { BodyReader, Chunk } from './body-reader.ts';

/** Bun sends a head and a small body in one write. This leaves room for the head. */
export const ONE_WRITE_BYTES = 12 * 1024;

export interface StreamedBody {
  /** The chunk that has already been read. */
  readonly firstChunk?: Chunk;
  /** Null when the first chunk is the whole body. */
  readonly rest: BodyReader | null;
}

/** Null when it is empty. */
export type Body = StreamedBody | Chunk | null;

export function isStreamed(body: Body): body is StreamedBody {
  return body !== null && !(body instanceof Uint8Array);
}
