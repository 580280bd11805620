/** The failure of a generation that was recovered in vain. */

import { GatewayRequestError } from './gateway-request.ts';
import { isTemporary } from './repetition.ts';

export class RecoveryError extends Error {
  override readonly name = 'RecoveryError';
  /**
   * - `gave_up`: the connection did not come back in time, or the creation has no id.
   * - `refused`: the gateway or the upstream refuses the rest, as the `cause` says.
   * - `changed`: the creation's audio is not the one whose first part has arrived.
   */
  readonly code: 'gave_up' | 'refused' | 'changed';
  /** Null when no response to the order has arrived; the creation may exist nevertheless. */
  readonly creationId: string | null;
  /** The same order under the same key is not charged for twice. */
  readonly idempotencyKey: string;

  constructor(code: RecoveryError['code'], generation: RecoveredGeneration, cause?: unknown) {
    super(MESSAGES[code], { cause });
    this.code = code;
    this.creationId = generation.creationId;
    this.idempotencyKey = generation.idempotencyKey;
  }
}

export type RecoveredGeneration = Pick<RecoveryError, 'creationId' | 'idempotencyKey'>;

const MESSAGES = {
  gave_up: 'The connection broke, and the generation could not be recovered in time.',
  refused: 'The connection broke, and the rest of the generation was refused.',
  changed: 'The connection broke, and the audio has changed since.',
} as const satisfies Record<RecoveryError['code'], string>;

/** Returns the error that the caller gets after a break: a failed request is only the cause of it. */
export function afterBreak(error: unknown, generation: RecoveredGeneration): unknown {
  if (!(error instanceof GatewayRequestError)) return error;
  return new RecoveryError(isTemporary(error) ? 'gave_up' : 'refused', generation, error);
}
