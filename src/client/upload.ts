/** Sends any request below the upstream's `/v1/`: watches its body on request, and repeats it once if the gateway asks. */

import { type GatewayConnection, GatewayRequestError, sendRequest } from './gateway-request.ts';
import { canWatch, fetchWatched, type UploadProgress } from './watched-request.ts';

export interface UpstreamInit extends RequestInit {
  /**
   * Called while the body is sent, and again from its beginning when it is repeated. Such a request is an
   * `XMLHttpRequest`, because `fetch` tells nothing; where there is none, as in a service worker, it is never called.
   */
  readonly onProgress?: ((progress: UploadProgress) => void) | undefined;
}

/**
 * @throws GatewayRequestError as {@link sendRequest} does
 * @throws the reason of `init.signal` when it was aborted, and what a stream fails with
 */
export async function sendUpstream(
  connection: GatewayConnection,
  path: string,
  { onProgress, ...init }: UpstreamInit = {},
): Promise<Response> {
  const { body } = init;
  const sent: RequestInit =
    body instanceof ReadableStream ? { ...init, body: await collect(body, init) } : init;
  const fetch: GatewayConnection['fetch'] =
    onProgress && canWatch() ? (url, watched) => fetchWatched(url, watched, onProgress) : connection.fetch;
  const send = () => sendRequest({ ...connection, fetch }, path, sent);
  try {
    return await send();
  } catch (error) {
    if (!asksToRepeat(error)) throw error;
    return send();
  }
}

/** Most browsers send no stream, or only over HTTP/2, and it could not be repeated. */
function collect(stream: ReadableStream, { signal }: RequestInit): Promise<Blob> {
  const stoppable = stream.pipeThrough(new TransformStream(), signal ? { signal } : {});
  return new Response(stoppable).blob();
}

/** The gateway does not keep an upload, so it has renewed the session, but could not repeat the request. */
function asksToRepeat(error: unknown): boolean {
  if (!(error instanceof GatewayRequestError)) return false;
  const { status, retryAfterSeconds, sessionHasEnded, challenge } = error;
  return status === 401 && retryAfterSeconds === 0 && !sessionHasEnded && !challenge;
}
