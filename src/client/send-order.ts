/** Begins a track over one connection: with an order, or with the audio of one that the upstream finishes by itself. */

import type { ArrivedAudio } from './arrived-audio.ts';
import { contentPath } from './creation-path.ts';
import { type GatewayConnection, GatewayRequestError, networkError, sendRequest } from './gateway-request.ts';
import type { GenerationOptions } from './generation.ts';
import { copyOrder, type GenerationOrder } from './generation-order.ts';
import { RecoveryError } from './recovery-error.ts';
import { beforeStall } from './watched-body.ts';

/** The beginning of a track, whose body fails when the connection breaks. */
export interface BegunTrack {
  readonly creationId: string | null;
  readonly generationId: string | null;
  readonly contentType: string;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

/**
 * Returns as soon as the audio begins.
 *
 * @throws GatewayRequestError when the order is refused or the gateway cannot be reached
 * @throws the signal's reason when it is aborted
 */
export async function sendOrder(
  connection: GatewayConnection,
  order: GenerationOrder,
  { idempotencyKey, signal }: Required<Pick<GenerationOptions, 'idempotencyKey' | 'signal'>>,
): Promise<BegunTrack> {
  const { headers, body } = await sendRequest(connection, '/api/music/generate', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
    body: JSON.stringify(copyOrder(order)),
    signal,
  });
  return {
    creationId: headers.get('x-music-creation-id'),
    generationId: headers.get('x-generation-id'),
    contentType: headers.get('content-type') ?? 'audio/mpeg',
    body,
  };
}

interface FinishedCreation {
  readonly creationId: string;
  readonly idempotencyKey: string;
  readonly arrived: ArrivedAudio;
  readonly signal: AbortSignal;
  readonly stallMs: number;
}

/**
 * Opens the audio of a creation from its first byte, by a range: the gateway asks for a long one in slices, so it has
 * memory for it when it has none for a generation.
 *
 * @throws GatewayRequestError when the audio is not there yet, or the gateway cannot be reached
 * @throws RecoveryError when the response has another part of the audio
 * @throws the signal's reason when it is aborted
 */
export async function openCreation(
  connection: GatewayConnection,
  { creationId, idempotencyKey, arrived, signal, stallMs }: FinishedCreation,
): Promise<BegunTrack> {
  const attempt = new AbortController();
  const request = sendRequest(connection, `/api/upstream${contentPath(creationId)}`, {
    headers: arrived.rangeHeaders(),
    cache: 'no-store',
    signal: AbortSignal.any([signal, attempt.signal]),
  });
  const response = await beforeStall(request, stallMs, (stall) => attempt.abort(stall)).catch((error) => {
    throw error instanceof GatewayRequestError ? error : networkError(error, signal, true);
  });
  if (!arrived.continues(response) && response.status === 206) {
    attempt.abort();
    throw new RecoveryError('changed', { creationId, idempotencyKey });
  }
  const contentType = response.headers.get('content-type') ?? 'audio/mpeg';
  return { creationId, generationId: null, contentType, body: response.body };
}
