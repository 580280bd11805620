/** A track of the sandbox that is disturbed on its way, and what it is undisturbed. */

import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';

/** Ten seconds, for ten credits. */
export const ORDER = { model: 'sandbox-music-1', prompt: 'Waves under a pier', music_length_ms: 10_000 };
export const TRACK_BYTES = wavSize(ORDER.music_length_ms);

/** What the account has and has paid after one track. */
export const ONCE = { creations: 1, credits: 10 };

/** The SHA-256 of the audio that the sandbox composes for the order. */
export function undisturbedHash(): string {
  const { music_length_ms: lengthMs, model, prompt } = ORDER;
  return sha256(renderWav(composeTrack({ model, prompt, lengthMs }), 0, TRACK_BYTES));
}

export function sha256(audio: Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update(audio).digest('hex');
}
