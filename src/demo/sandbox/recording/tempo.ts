/** Finds the tempo of a recording: the distance at which its beginnings of notes repeat. */

import type { Samples } from './wav-samples.ts';

const STEP_SECONDS = 0.01;
const [SLOWEST, FASTEST] = [60, 180];
/** Of several tempi that fit, such as 60, 120 and 180, people tap the one that is nearest to this. */
const USUAL = 110;
const OCTAVES_AROUND_USUAL = 0.7;
/** So many beats in a row. */
const BEATS = 4;
/** An exact repetition has 1, noise less than 0.1. */
const LEAST_CLARITY = 0.12;
/** The logarithm of how much louder a step has to be for a beginning: a steady tone trembles a little. */
const LEAST_RISE = 0.3;

/** In beats a minute. Undefined if there is no steady beat. */
export function tempoOf(samples: Samples): number | undefined {
  const stepSize = Math.round(STEP_SECONDS * samples.rate);
  const onsets = onsetsOf(samples.values, stepSize);
  const power = similarity(onsets, 0);
  if (power <= 0) return undefined;
  let best = { bpm: 0, score: 0, clarity: 0 };
  for (let bpm = SLOWEST; bpm <= FASTEST; bpm += 0.25) {
    const beat = ((60 / bpm) * samples.rate) / stepSize;
    let sum = 0;
    for (let beats = 1; beats <= BEATS; beats++) sum += similarityBetween(onsets, beats * beat);
    const clarity = sum / BEATS / power;
    const score = clarity * Math.exp(-((Math.log2(bpm / USUAL) / OCTAVES_AROUND_USUAL) ** 2) / 2);
    if (score > best.score) best = { bpm, score, clarity };
  }
  return best.clarity < LEAST_CLARITY ? undefined : Math.round(best.bpm);
}

/** How much louder each step is than the one before, less the average. */
function onsetsOf(values: Float32Array, size: number): Float32Array {
  const energies = Float32Array.from({ length: Math.floor(values.length / size) }, (_, step) => {
    let energy = 0;
    for (let at = step * size; at < (step + 1) * size; at++) {
      // Differences, because notes begin with high tones.
      energy += ((values[at] ?? 0) - (values[at - 1] ?? 0)) ** 2;
    }
    return energy;
  });
  // What is much quieter than the whole is not heard.
  const floor = mean(energies) / 100;
  const rises = energies.map((energy, step) =>
    floor > 0
      ? Math.max(0, Math.log((energy + floor) / ((energies[step - 1] ?? energy) + floor)) - LEAST_RISE)
      : 0,
  );
  const average = mean(rises);
  return rises.map((rise) => rise - average);
}

/** How alike the onsets are to themselves so many steps later. */
function similarity(onsets: Float32Array, steps: number): number {
  const overlap = onsets.length - steps;
  let sum = 0;
  for (let at = 0; at < overlap; at++) sum += (onsets[at] ?? 0) * (onsets[at + steps] ?? 0);
  return overlap > 0 ? sum / overlap : 0;
}

function similarityBetween(onsets: Float32Array, steps: number): number {
  const [before, share] = [Math.floor(steps), steps % 1];
  return similarity(onsets, before) * (1 - share) + similarity(onsets, before + 1) * share;
}

function mean(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
