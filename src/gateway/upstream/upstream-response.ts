/** The parts of an upstream's response that the gateway uses. */

import { type Chunk, cancelQuietly } from '../http/body-reader.ts';
import { isStreamed, type StreamedBody } from '../http/observed-body.ts';

/** Not a Response: wrapping what has been read of a body in another one would be expensive. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: StreamedBody | Chunk | null;
  /** Resolves when a body that nobody gets has come to its end; undefined for any other. */
  readonly discarded?: Promise<void>;
  /** Whether the body is fetched in slices. */
  readonly isSliced?: boolean;
}

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

/** Waits for the first byte of the body. A body that ends without one becomes null. */
export async function awaitFirstByte({ status, headers, body }: Response): Promise<UpstreamResponse> {
  const reader = body?.getReader();
  let read = await reader?.read();
  while (read?.value?.byteLength === 0) read = await reader?.read();
  return { status, headers, body: reader && read?.value ? { firstChunk: read.value, reader } : null };
}

/** Parses the JSON of a buffered response; undefined when the body is not JSON. */
export function jsonOf({ body }: UpstreamResponse): unknown {
  if (!(body instanceof Uint8Array)) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}

/** Reads a body to its end. It never becomes a JavaScript object, so that it takes little memory. */
export async function discardNatively(response: Response): Promise<void> {
  // When the upstream breaks off, no client is left to receive an error.
  await Bun.write('/dev/null', response).catch(() => {});
}

export async function discard({ body }: UpstreamResponse): Promise<void> {
  if (isStreamed(body)) await cancelQuietly(body.reader);
}
