/** An upstream's answer, as far as the gateway looks at it. */

/**
 * A Response, or what is left of one whose body had to be read: another Response around that would cost more than all
 * of its parsing.
 */
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

/** Waits for the first byte of the body; a body that ends without one becomes null. */
export async function begun({ status, headers, body }: Response): Promise<UpstreamResponse> {
  const reader = body?.getReader();
  let read = await reader?.read();
  while (read?.value?.byteLength === 0) read = await reader?.read();
  reader?.releaseLock();
  return read?.value ? { status, headers, body, firstPiece: read.value } : { status, headers, body: null };
}

/** The JSON of an answer that is here whole; undefined when it is none. */
export function jsonOf({ body }: UpstreamResponse): unknown {
  if (!(body instanceof Uint8Array)) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}

/** Gives up a body that nobody will read, and would otherwise hold its connection. */
export async function discard({ body }: UpstreamResponse): Promise<void> {
  // It fails when the connection is gone already, and that is as well.
  if (body instanceof ReadableStream) await body.cancel().catch(() => {});
}
