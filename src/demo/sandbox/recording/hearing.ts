/** Hears in a recording what a track can take from it. */

import { type Key, keyOf } from './key.ts';
import { tempoOf } from './tempo.ts';
import { readWavSamples, UnusableRecording } from './wav-samples.ts';

/** What cannot be heard is undefined, but never both. */
export interface Heard {
  readonly key: Key | undefined;
  /** Beats a minute. */
  readonly tempo: number | undefined;
}

const SHORTEST_SECONDS = 3;

/** @throws UnusableRecording with the reason in words */
export function hear(file: Buffer): Heard & { readonly seconds: number } {
  const samples = readWavSamples(file);
  const { seconds } = samples;
  if (seconds < SHORTEST_SECONDS)
    throw new UnusableRecording(`A recording has to be ${SHORTEST_SECONDS} seconds long at least.`);
  const heard = { key: keyOf(samples), tempo: tempoOf(samples) };
  if (!heard.key && heard.tempo === undefined)
    throw new UnusableRecording('Neither a key nor a steady beat can be heard in this recording.');
  return { ...heard, seconds };
}
