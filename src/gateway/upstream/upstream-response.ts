/** An upstream's response, as far as the gateway looks at it, and what can be done with it. */

import { type Body, isStreamed } from '../http/body.ts';
import { type BodyReader, type Chunk, cancelQuietly } from '../http/body-reader.ts';

/** Not a Response: wrapping what has been read of a body in another one would be expensive. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
  /** Whether the body is fetched in slices. */
  readonly isSliced?: boolean;
}

/** The encodings that Bun decodes, and `identity`. Bun does not decode combinations such as `gzip, br`. */
const DECODED = /^(?:gzip|x-gzip|deflate|br|zstd|identity)?$/i;

/** Whether Bun can have decoded the body. */
export function isDecodable({ headers }: Pick<UpstreamResponse, 'headers'>): boolean {
  return DECODED.test(headers.get('content-encoding') ?? '');
}

/** For a body that has been decoded: without the headers that say how it arrived, which Bun keeps. */
export function asDecoded(response: UpstreamResponse): UpstreamResponse {
  if (!isDecodable(response)) return response;
  const headers = new Headers(response.headers);
  headers.delete('content-encoding');
  headers.delete('content-length');
  return { ...response, headers };
}

export function isSuccess({ status }: Pick<UpstreamResponse, 'status'>): boolean {
  return status >= 200 && status <= 299;
}

/** The length of the body; infinite when `Content-Length` does not say it. @see RFC 9112 section 6.3 */
export function declaredLength(headers: Headers): number {
  const length = headers.get('content-length') ?? '';
  // Bun joins repeated lines to `5, 5`, and keeps a length beside chunks, where it says nothing.
  const isKnown = /^\d{1,15}$/.test(length) && !headers.has('transfer-encoding');
  return isKnown ? Number(length) : Number.POSITIVE_INFINITY;
}

/** Yields the chunks of a body that is read by hand. */
export async function* chunksOf(reader: BodyReader | null): AsyncGenerator<Chunk, void> {
  for (let read = await reader?.read(); read?.value; read = await reader?.read()) yield read.value;
}

/** Cancels a streamed body, because an unread one would keep its connection open. */
export async function cancelBody({ body }: UpstreamResponse): Promise<void> {
  if (isStreamed(body)) await cancelQuietly(body.rest);
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
