/** Reads a file as a whole, and tells how much of it is here. */

import { type GatewayConnection, networkError, sendRequest } from './gateway-request.ts';

export interface DownloadProgress {
  readonly receivedBytes: number;
  /** Undefined if the upstream does not say so, as when it serves no ranges. */
  readonly totalBytes: number | undefined;
}

export interface DownloadOptions {
  readonly signal?: AbortSignal;
  /** Called for each piece. An error thrown here ends the download. */
  readonly onProgress?: (progress: DownloadProgress) => void;
}

/**
 * Asks for a range from the first byte, whose response says how long the file is: a streamed one has no `Content-Length`.
 *
 * @throws GatewayRequestError as {@link sendRequest} does, and when the response breaks off
 * @throws the signal's reason when it is aborted
 */
export async function download(
  connection: GatewayConnection,
  path: string,
  { signal, onProgress }: DownloadOptions = {},
): Promise<Blob> {
  const range = { headers: { range: 'bytes=0-' }, ...(signal && { signal }) };
  const { headers, body } = await sendRequest(connection, path, range);
  const [, total] = /\/(\d+)$/.exec(headers.get('content-range') ?? '') ?? [];
  const totalBytes = total === undefined ? undefined : Number(total);
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let receivedBytes = 0;
  const reader = body?.getReader();
  const failed = (cause?: unknown) => networkError(cause, signal, true);
  try {
    for (;;) {
      const piece = await reader?.read().catch((cause: unknown) => {
        throw failed(cause);
      });
      if (!piece?.value) break;
      pieces.push(piece.value);
      receivedBytes += piece.value.length;
      onProgress?.({ receivedBytes, totalBytes });
    }
  } finally {
    // Only after an error there is a connection left to close.
    reader?.cancel().catch(() => {});
  }
  // Before HTTP/2, a response without a length that breaks off looks as if it had ended.
  if (receivedBytes !== (totalBytes ?? receivedBytes)) throw failed();
  return new Blob(pieces, { type: headers.get('content-type') ?? '' });
}
