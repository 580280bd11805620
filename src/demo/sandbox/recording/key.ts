/** Finds the key of a recording: the one whose notes are heard most. */

import type { Samples } from './wav-samples.ts';

export const MODES = ['major', 'minor'] as const;

export interface Key {
  /** In semitones above C, from 0 to 11. */
  readonly tonic: number;
  readonly mode: (typeof MODES)[number];
}

/** MIDI numbers of four octaves. */
const NOTES = Array.from({ length: 48 }, (_, index) => 36 + index);
/** Long enough to tell a semitone from the next one in the second lowest octave. */
const FRAME_SECONDS = 0.25;

/**
 * How well each note, in semitones above the tonic, fits into the key, as listeners have judged.
 *
 * @see Krumhansl and Kessler 1982, Psychological Review 89: 334-368
 */
const FITS: Record<Key['mode'], readonly number[]> = {
  major: [6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88],
  minor: [6.33, 2.68, 3.52, 5.38, 2.6, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17],
};
/** The correlation with the best key. */
const LEAST_FIT = 0.6;
/** How much the twelve notes differ, as a share of their average. Those of noise differ by a tenth of this. */
const LEAST_CONTRAST = 0.15;

/** Undefined if no key fits. */
export function keyOf(samples: Samples): Key | undefined {
  const heard = chromaOf(samples);
  const spread = Math.sqrt(sum(centred(heard).map((each) => each ** 2)) * heard.length);
  if (spread <= LEAST_CONTRAST * sum(heard)) return undefined;
  const keys = MODES.flatMap((mode) => heard.map((_, tonic) => ({ tonic, mode })));
  let best: { key: Key | undefined; fit: number } = { key: undefined, fit: LEAST_FIT };
  for (const key of keys) {
    const fit = correlation(
      FITS[key.mode],
      heard.map((_, semitones) => heard[(key.tonic + semitones) % 12] ?? 0),
    );
    if (fit > best.fit) best = { key, fit };
  }
  return best.key;
}

/** How much of each of the twelve notes is heard, in all octaves. A loud moment counts no more than a quiet one. */
function chromaOf({ values, rate }: Samples): readonly number[] {
  const chroma = Array<number>(12).fill(0);
  const size = Math.round(FRAME_SECONDS * rate);
  for (let from = 0; from + size <= values.length; from += size) {
    // Fades in and out, so that a tone is not heard as its neighbours too.
    const frame = values
      .subarray(from, from + size)
      .map((value, at) => value * Math.sin((Math.PI * at) / size));
    const strengths = NOTES.map((note) => strengthOf(frame, note, rate));
    const all = sum(strengths) || 1;
    for (const [index, note] of NOTES.entries())
      chroma[note % 12] = (chroma[note % 12] ?? 0) + (strengths[index] ?? 0) / all;
  }
  return chroma;
}

/** The amplitude of a note's tone in the frame, by Goertzel's algorithm. */
function strengthOf(frame: Float32Array, note: number, rate: number): number {
  const turn = (2 * Math.PI * 440 * 2 ** ((note - 69) / 12)) / rate;
  const factor = 2 * Math.cos(turn);
  let [last, before] = [0, 0];
  for (let at = 0; at < frame.length; at++) {
    const next = (frame[at] ?? 0) + factor * last - before;
    before = last;
    last = next;
  }
  return Math.sqrt(Math.max(0, last ** 2 + before ** 2 - factor * last * before));
}

/** From -1 to 1; 0 when one of them is flat. */
function correlation(one: readonly number[], other: readonly number[]): number {
  const [a, b] = [centred(one), centred(other)];
  const product = (x: readonly number[], y: readonly number[]) =>
    sum(x.map((value, index) => value * (y[index] ?? 0)));
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b)) || 0;
}

function centred(values: readonly number[]): readonly number[] {
  const average = sum(values) / values.length;
  return values.map((value) => value - average);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
