/** Orders a track over one connection. */

import { type GatewayConnection, sendRequest } from './gateway-request.ts';
import type { GenerationOptions } from './generation.ts';

/** A track, or the rest of it, whose body fails when the connection breaks. */
export interface BegunTrack {
  readonly creationId: string | null;
  readonly generationId: string | null;
  readonly contentType: string;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

type SentWith = Required<Pick<GenerationOptions, 'idempotencyKey' | 'signal' | 'path'>>;

/**
 * Returns as soon as the audio begins.
 *
 * @throws GatewayRequestError when the order is refused or the gateway cannot be reached
 * @throws the signal's reason when it is aborted
 */
export async function sendOrder(
  connection: GatewayConnection,
  order: object,
  { idempotencyKey, signal, path }: SentWith,
): Promise<BegunTrack> {
  const { headers, body } = await sendRequest(
    connection,
    path ? `/api/upstream${path}` : '/api/music/generate',
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
      body: JSON.stringify(order),
      signal,
    },
  );
  return {
    creationId: headers.get('x-music-creation-id'),
    generationId: headers.get('x-generation-id'),
    contentType: headers.get('content-type') ?? 'audio/mpeg',
    body,
  };
}
