/** Opens the rest of a creation's audio: all of it when nothing has arrived. */

import type { ArrivedAudio } from './arrived-audio.ts';
import type { MadeCheck } from './being-made.ts';
import { contentPath } from './creation-path.ts';
import { type GatewayConnection, GatewayRequestError, networkError, sendRequest } from './gateway-request.ts';
import { RecoveryError } from './recovery-error.ts';
import type { BegunTrack } from './send-order.ts';
import { beforeStall } from './watched-body.ts';

interface MissingAudio {
  readonly creationId: string;
  readonly idempotencyKey: string;
  readonly arrived: ArrivedAudio;
  readonly madeCheck: MadeCheck;
  readonly signal: AbortSignal;
  readonly stallMs: number;
}

/**
 * Asks for a range even from the first byte: the gateway asks for a long one in slices, so it has memory for it when it
 * has none for a generation.
 *
 * @throws GatewayRequestError when the audio is not there yet, or the gateway cannot be reached
 * @throws RecoveryError when the response does not continue what has arrived
 * @throws the signal's reason when it is aborted
 */
export async function openAudio(
  connection: GatewayConnection,
  { creationId, idempotencyKey, arrived, madeCheck, signal, stallMs }: MissingAudio,
): Promise<BegunTrack> {
  const attempt = new AbortController();
  const changed = (cause?: unknown) => new RecoveryError('changed', { creationId, idempotencyKey }, cause);
  // A browser's cache must not put this part together with another one.
  const init = { cache: 'no-store', signal: AbortSignal.any([signal, attempt.signal]) } as const;
  const request = madeCheck.open(creationId, init, () => {
    const path = `/api/upstream${contentPath(creationId)}`;
    return sendRequest(connection, path, { ...init, headers: arrived.rangeHeaders() });
  });
  const response = await beforeStall(request, stallMs, (stall) => attempt.abort(stall)).catch((error) => {
    if (!(error instanceof GatewayRequestError))
      // A fault of the web app, such as in its `isBeingMade`, is not one of the network.
      throw attempt.signal.aborted || signal.aborted ? networkError(error, signal, true) : error;
    throw error.status === 416 && arrived.bytes > 0 ? changed(error) : error;
  });
  const isWhole = response.status !== 206 && arrived.bytes === 0;
  if (!arrived.continues(response) && !isWhole) {
    attempt.abort();
    throw changed();
  }
  const contentType = response.headers.get('content-type') ?? 'audio/mpeg';
  return { creationId, generationId: null, contentType, body: response.body };
}
