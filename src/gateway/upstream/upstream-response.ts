/** An upstream's response, as far as the gateway looks at it, and the ways to read its body. */

import { type BodyReader, type Chunk, cancelQuietly, readBounded } from '../http/body-reader.ts';
import { type Body, isStreamed, type StreamedBody } from '../http/observed-body.ts';

/** Not a Response: wrapping what has been read of a body in another one would be expensive. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
  /** Resolves when a body that no client gets has come to its end; undefined for any other. */
  readonly discarded?: Promise<void>;
  /** Whether the body is fetched in slices. */
  readonly isSliced?: boolean;
}

/** Bounds the decoded size of a body, so that a small one cannot expand into gigabytes. */
const DECODED_LIMIT_BYTES = 8 * 1024 * 1024;
/** What a call costs includes a body of this size. */
const LARGE_BYTES = 16 * 1024;

export function isSuccess({ status }: Pick<UpstreamResponse, 'status'>): boolean {
  return status >= 200 && status <= 299;
}

/** The length of the body; infinite when `Content-Length` does not say it. @see RFC 9112 section 6.3 */
export function declaredLength(headers: Headers): number {
  const length = headers.get('content-length') ?? '';
  // Bun joins repeated lines to `5, 5`, and accepts a length beside chunks, which then count.
  const isKnown = /^\d{1,15}$/.test(length) && !headers.has('transfer-encoding');
  return isKnown ? Number(length) : Number.POSITIVE_INFINITY;
}

/** Reads all of a body whose length is known. It is not an async function, because that would slow down every call. */
export function readWhole(response: Response): Promise<Chunk | null> {
  return response.arrayBuffer().then((body) => (body.byteLength ? new Uint8Array(body) : null));
}

/**
 * Reads all of a body that Bun decodes; undefined when it is too large.
 *
 * @param admitLarge called with the size so far before more than 16 KB are read; throws if there is no room
 */
export function readDecoded(
  response: Response,
  admitLarge?: (bytes: number) => void,
): Promise<Chunk | null | undefined> {
  const { headers } = response;
  const length = declaredLength(headers);
  // The decoded size of an encoded body is unknown, so it is read with a bound. Reading natively is faster.
  if (length <= DECODED_LIMIT_BYTES && !headers.has('content-encoding')) {
    if (length > LARGE_BYTES) admitLarge?.(length);
    return readWhole(response);
  }
  let size = 0;
  const onChunk = (bytes: number) => {
    size += bytes;
    if (size > LARGE_BYTES) admitLarge?.(size);
  };
  return readBounded(response.body, DECODED_LIMIT_BYTES, onChunk).then((body) =>
    body?.byteLength === 0 ? null : body,
  );
}

/**
 * Waits for the first byte of a body. A response whose first chunk is known when it begins leaves in 3 system calls, and
 * any other one in 13. A body that ends without a byte becomes null.
 */
export async function awaitFirstByte(body: Response['body']): Promise<StreamedBody | null> {
  const reader = body?.getReader();
  let read = await reader?.read();
  while (read?.value?.byteLength === 0) read = await reader?.read();
  return reader && read?.value ? { firstChunk: read.value, reader } : null;
}

/** Yields the chunks of a body that is read by hand. */
export async function* chunksOf(reader: BodyReader | null): AsyncGenerator<Chunk, void> {
  for (let read = await reader?.read(); read?.value; read = await reader?.read()) yield read.value;
}

/** Cancels a streamed body, because an unread one would keep its connection open. */
export async function discard({ body }: UpstreamResponse): Promise<void> {
  if (isStreamed(body)) await cancelQuietly(body.reader);
}

/** Parses the JSON of a buffered response; undefined when the body is not JSON. */
export function jsonOf({ body }: Pick<UpstreamResponse, 'body'>): unknown {
  if (!(body instanceof Uint8Array)) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}
