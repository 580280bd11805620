/** Generating a track: one attempt under an Idempotency-Key, with its audio as it comes. */

import type { GenerationRequest } from '../routes/schemas.ts';
import { type GatewayConnection, networkError, sendRequest } from './gateway-request.ts';

/** What to generate, in the gateway's own words. */
export type GenerationOrder = Pick<GenerationRequest, 'model' | 'prompt' | 'music_length_ms'> & {
  readonly force_instrumental?: boolean;
  readonly is_public?: boolean;
};

export interface GenerationOptions {
  /**
   * A new one unless given. Give the same one again to retry an attempt whose outcome is not known: an upstream that
   * honours the key makes and charges for one creation.
   */
  readonly idempotencyKey?: string;
  /** Ends the wait, not the generation: that is paid for, and lands in the library. */
  readonly signal?: AbortSignal;
  /** Called when the answer begins and for each piece of it. */
  readonly onProgress?: (progress: GenerationProgress) => void;
}

export interface GenerationProgress {
  readonly bytes: number;
  /** Milliseconds since the order was sent. */
  readonly elapsedMs: number;
  /** After how many milliseconds the first byte was here; undefined as long as it is not. */
  readonly firstByteMs: number | undefined;
}

/** A track that is being generated. Its body has to be read, or cancelled. */
export interface Generation {
  readonly creationId: string | null;
  readonly generationId: string | null;
  readonly contentType: string;
  /** The audio. It fails with a GatewayRequestError when the connection breaks, with an AbortError when aborted. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/**
 * Orders a track, and returns as soon as its audio begins.
 *
 * @throws GatewayRequestError when the order is refused or the gateway cannot be reached
 * @throws DOMException `AbortError` when aborted
 */
export async function generate(
  connection: GatewayConnection,
  order: GenerationOrder,
  { idempotencyKey = crypto.randomUUID(), signal, onProgress = () => {} }: GenerationOptions = {},
): Promise<Generation> {
  const begun = performance.now();
  const response = await sendRequest(connection, '/api/music/generate', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
    body: JSON.stringify(order),
    ...(signal && { signal }),
  });
  let bytes = 0;
  let firstByteMs: number | undefined;
  const report = (more: number) => {
    const elapsedMs = performance.now() - begun;
    bytes += more;
    if (more) firstByteMs ??= elapsedMs;
    onProgress({ bytes, elapsedMs, firstByteMs });
  };
  report(0);
  return {
    creationId: response.headers.get('x-music-creation-id'),
    generationId: response.headers.get('x-generation-id'),
    contentType: response.headers.get('content-type') ?? 'audio/mpeg',
    body: reported(response, report, signal),
  };
}

/** The body, with each piece reported and a broken connection told in the client's own error. */
function reported(
  response: Response,
  report: (more: number) => void,
  signal: AbortSignal | undefined,
): Generation['body'] {
  const reader = response.body?.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const piece = await reader?.read();
        if (!piece?.value) return controller.close();
        report(piece.value.byteLength);
        controller.enqueue(piece.value);
      } catch (cause) {
        controller.error(networkError(cause, signal, false));
      }
    },
    cancel: (reason) => reader?.cancel(reason),
  });
}
