/** Waits for a creation that is still being made by asking for its record: browsers report each 409 as an error. */

import { creationPath } from './creation-path.ts';
import { type GatewayConnection, GatewayRequestError, isRecord, requestData } from './gateway-request.ts';
import { isTemporary } from './repetition.ts';

export interface MadeCheck {
  /** @throws GatewayRequestError with 409 while its record says that it is being made */
  checkRecord(creationId: string, init: RequestInit): Promise<void>;
  /**
   * Opens its audio. Some upstreams send what is there of a creation that is being made; once this one has refused that
   * with 409, its records are asked first.
   */
  open(creationId: string, init: RequestInit, request: () => Promise<Response>): Promise<Response>;
}

export function createMadeCheck<Creation>(
  connection: GatewayConnection,
  isBeingMade: (creation: Creation) => boolean = isGenerating,
): MadeCheck {
  let hasRefused = false;
  const checkRecord = async (creationId: string, init: RequestInit) => {
    const path = `/api/upstream${creationPath(creationId)}`;
    if (!isBeingMade(await requestData<Creation>(connection, path, init))) return;
    throw new GatewayRequestError('The track is still being made.', { status: 409, retryIsSafe: true });
  };
  return {
    checkRecord,
    async open(creationId, init, request) {
      try {
        if (hasRefused) await checkRecord(creationId, init);
      } catch (error) {
        // An upstream without records may have the audio.
        if (!(error instanceof GatewayRequestError) || isTemporary(error)) throw error;
      }
      return request().catch((error) => {
        if (error instanceof GatewayRequestError && error.status === 409) hasRefused = true;
        throw error;
      });
    },
  };
}

function isGenerating(creation: unknown): boolean {
  return isRecord(creation) && creation['status'] === 'generating';
}
