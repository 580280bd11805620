/** How a response's body is read: the interface, and the buffered way. RelayedBody and GeneratedTrack pass it on. */

import type { Body, StreamedBody } from '../http/body.ts';
import { ONE_WRITE_BYTES } from '../http/body.ts';
import { type Chunk, readBounded } from '../http/body-reader.ts';
import type { Deadline } from './deadline.ts';
import { declaredLength } from './upstream-response.ts';

/** How much of a body is read before the call returns: that much the call's deadline covers. */
export interface BodyMode {
  /** Whether Bun decodes the body. One that is passed on must match its Content-Encoding and Content-Length. */
  readonly isDecoded: boolean;
  /** Returns undefined when the response is invalid. */
  read(response: Response, deadline: Deadline): Body | Promise<Body | undefined> | undefined;
}

/** The most that is read of a buffered body, because a few encoded bytes can expand into gigabytes. */
const DECODED_LIMIT_BYTES = 8 * 1024 * 1024;
/** A buffered body up to this size needs no memory of its own, because what every call reserves includes it. */
const LARGE_BYTES = 16 * 1024;

/** The body is decoded and in memory when the call returns. */
export class Buffered implements BodyMode {
  readonly isDecoded = true;
  readonly #admitLarge: ((bytes: number) => void) | undefined;

  /**
   * @param admitLarge called with the size of a body of more than 16 KB, or with its size so far when its length is not
   *   known; throws when there is no room for it, which ends the call
   */
  constructor(admitLarge?: (bytes: number) => void) {
    this.#admitLarge = admitLarge;
  }

  read(response: Response): Promise<Chunk | null | undefined> {
    const { headers } = response;
    const length = declaredLength(headers);
    // Reading natively is faster, but has no bound, and the decoded size of an encoded body is unknown.
    if (length <= DECODED_LIMIT_BYTES && !headers.has('content-encoding')) {
      this.#admit(length);
      return readWhole(response);
    }
    let size = 0;
    const onChunk = (bytes: number) => {
      size += bytes;
      this.#admit(size);
    };
    return readBounded(response.body, DECODED_LIMIT_BYTES, onChunk).then((body) =>
      body?.byteLength === 0 ? null : body,
    );
  }

  #admit(bytes: number): void {
    if (bytes > LARGE_BYTES) this.#admitLarge?.(bytes);
  }
}

/** Whether the body leaves in one write. Such a body is read whole, because Bun drops the Content-Length of a streamed one. */
export function fitsOneWrite({ headers }: Response): boolean {
  return declaredLength(headers) <= ONE_WRITE_BYTES;
}

/** Reads all of a body whose length is known. */
export function readWhole(response: Response): Promise<Chunk | null> {
  return response.arrayBuffer().then(chunkOf);
}

function chunkOf(body: ArrayBuffer): Chunk | null {
  return body.byteLength ? new Uint8Array(body) : null;
}

/**
 * Waits for the first byte of a body. A response whose first chunk is known when it begins leaves in 3 system calls, and
 * any other one in 13. A body that ends without a byte becomes null.
 */
export async function awaitFirstByte(body: Response['body']): Promise<StreamedBody | null> {
  const rest = body?.getReader();
  let read = await rest?.read();
  while (read?.value?.byteLength === 0) read = await rest?.read();
  return rest && read?.value ? { firstChunk: read.value, rest } : null;
}
