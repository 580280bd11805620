/** The parts of an upstream's response that the gateway uses. */

/** A Response, or its parts once its body has been read: wrapping them in another Response would be expensive. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | Uint8Array<ArrayBuffer> | null;
  /** What has been read of a body that has begun; `body` is the rest. */
  readonly firstPiece?: Uint8Array<ArrayBuffer>;
}

export function isSuccess({ status }: UpstreamResponse): boolean {
  return status >= 200 && status <= 299;
}

/** Waits for the first byte of the body. A body that ends without one becomes null. */
export async function awaitFirstByte({ status, headers, body }: Response): Promise<UpstreamResponse> {
  const reader = body?.getReader();
  let read = await reader?.read();
  while (read?.value?.byteLength === 0) read = await reader?.read();
  reader?.releaseLock();
  return read?.value ? { status, headers, body, firstPiece: read.value } : { status, headers, body: null };
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

/** Cancels a body that nobody will read, because it would keep its connection open. */
export async function discard({ body }: UpstreamResponse): Promise<void> {
  // Cancelling fails when the connection is already closed, which is fine.
  if (body instanceof ReadableStream) await body.cancel().catch(() => {});
}
