/** Generates a track: one attempt under an Idempotency-Key, whose audio is read as it arrives. */

import type { GenerationRequest } from '../gateway/routes/schemas.ts';
import { type GatewayConnection, networkError, sendRequest } from './gateway-request.ts';

/** What to generate, in the gateway's own words. */
export type GenerationOrder = Pick<GenerationRequest, 'model' | 'prompt' | 'music_length_ms'> & {
  readonly force_instrumental?: boolean | undefined;
  readonly is_public?: boolean | undefined;
};

export interface GenerationOptions {
  /**
   * By default, a new one. Use the same one again to retry an attempt whose outcome is unknown: an upstream that honours
   * the key makes and charges for one creation.
   */
  readonly idempotencyKey?: string;
  /**
   * Ends the wait, or the body. The gateway lets the generation finish anyway, because it is paid for.
   */
  readonly signal?: AbortSignal;
  /** Called when the response begins and for each piece of it. An error thrown here ends the promise or the body. */
  readonly onProgress?: (progress: GenerationProgress) => void;
}

export interface GenerationProgress {
  readonly bytes: number;
  /** Milliseconds since the order was sent. */
  readonly elapsedMs: number;
  /** Milliseconds until the first byte; undefined until it has arrived. */
  readonly firstByteMs: number | undefined;
}

/** A track that is being generated. Its body must be read or cancelled. */
export interface Generation {
  readonly creationId: string | null;
  readonly generationId: string | null;
  readonly contentType: string;
  /** The audio. It fails with a GatewayRequestError when the connection breaks, with the signal's reason on abort. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/**
 * Orders a track, and returns as soon as its audio begins.
 *
 * @throws GatewayRequestError when the order is refused or the gateway cannot be reached
 * @throws the signal's reason, by default an `AbortError`, when aborted
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
    body: JSON.stringify(copyOrder(order)),
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

/** Without whatever else the caller's object has. */
export function copyOrder(order: GenerationOrder): GenerationOrder {
  const { model, prompt, music_length_ms, force_instrumental, is_public } = order;
  return { model, prompt, music_length_ms, force_instrumental, is_public };
}

/** Returns the body with each piece reported, and with the client's own error when the connection breaks. */
function reported(
  response: Response,
  report: (more: number) => void,
  signal: AbortSignal | undefined,
): Generation['body'] {
  const reader = response.body?.getReader();
  return new ReadableStream({
    async pull(controller) {
      // An error thrown here is the error that the reader of this body gets.
      const piece = await reader?.read().catch((cause: unknown) => {
        throw networkError(cause, signal, false);
      });
      if (!piece?.value) return controller.close();
      report(piece.value.byteLength);
      controller.enqueue(piece.value);
    },
    cancel: (reason) => reader?.cancel(reason),
  });
}
