/** Begins a track over one connection: with an order, or with the audio of one that the upstream finishes by itself. */

import { type GatewayConnection, sendRequest } from './gateway-request.ts';
import type { GenerationOptions } from './generation.ts';
import { copyOrder, type GenerationOrder } from './generation-order.ts';
import { type MissingAudio, openAudio } from './open-audio.ts';

const USUAL_TYPE = 'audio/mpeg';

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
    contentType: headers.get('content-type') ?? USUAL_TYPE,
    body,
  };
}

/**
 * Begins with the audio of a creation that the upstream finishes by itself.
 *
 * @throws as {@link openAudio} does
 */
export async function openCreation(
  connection: GatewayConnection,
  creation: MissingAudio,
): Promise<BegunTrack> {
  const { headers, body } = await openAudio(connection, creation);
  const contentType = headers.get('content-type') ?? USUAL_TYPE;
  return { creationId: creation.creationId, generationId: null, contentType, body };
}
