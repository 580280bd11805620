/** The audio of a paid generation, which upstream and client both make from its idempotency key. */

import { seededBlocks } from '../soak/content.ts';

const AUDIO_BYTES = 400_000;
export const PIECES = 40;

export function paidAudio(idempotencyKey: string): Buffer {
  return Buffer.concat([...seededBlocks(idempotencyKey, AUDIO_BYTES)]);
}
