/** Renders any range of a composition's samples. A sample depends on its index alone. */

import { BARS_PER_SECTION, type Composition, type Part, STEPS_PER_BAR } from './composition.ts';

export const SAMPLE_RATE = 24_000;
const SAMPLES_PER_MS = SAMPLE_RATE / 1_000;

/** How a part sounds. A pitched voice loops its table at the note's pitch; a drum plays its table once. */
interface Voice {
  table: Float32Array;
  /** Semitones from the key; absent for a drum. */
  transpose?: number;
  /** The notes that sound together, in scale steps above the written note. */
  stack: readonly number[];
  /** The pitch ratios of the oscillators: two slightly different ones sound like an ensemble. */
  oscillators: readonly number[];
  /** The gains of the note and its echoes. */
  gains: readonly number[];
  /** After 1 / `fall` seconds, a note has a quarter of its amplitude. */
  envelope: { attackMs: number; fall: number; releaseMs: number };
  /** A pitched note lasts until the next note of its part, but at least this many steps. */
  ringSteps: number;
}

interface Note {
  voice: Voice;
  start: number;
  length: number;
  /** The number of table positions per sample. */
  stride: number;
  gain: number;
}

const TABLE_SIZE = 8_192;
const ECHO_STEPS = 3;
// No note lasts longer than this, even with its release and echo.
const LOOK_BACK_STEPS = 2 * STEPS_PER_BAR;
const FADE_IN = 20 * SAMPLES_PER_MS;
const FADE_OUT = 2_000 * SAMPLES_PER_MS;
const CEILING = 0.72;

const VOICES: Record<Part, Voice> = {
  pad: {
    table: harmonics([1, 0.5, 0.3, 0.18, 0.1, 0.06, 0.03]),
    transpose: 0,
    stack: [0, 2, 4],
    oscillators: [1.004, 1 / 1.004],
    gains: [0.09],
    envelope: { attackMs: 90, fall: 0.15, releaseMs: 300 },
    ringSteps: 0,
  },
  bass: {
    table: harmonics([1, 0.5, 0.25, 0.12, 0.05]),
    transpose: -12,
    stack: [0],
    oscillators: [1],
    gains: [0.32],
    envelope: { attackMs: 6, fall: 0.9, releaseMs: 40 },
    ringSteps: 0,
  },
  arpeggio: {
    table: harmonics([1, 0.4, 0.25, 0.1, 0.08, 0.03]),
    transpose: 0,
    stack: [0],
    oscillators: [1],
    gains: [0.28, 0.1],
    envelope: { attackMs: 4, fall: 4, releaseMs: 60 },
    ringSteps: 6,
  },
  melody: {
    table: harmonics([1, 0.15, 0.3, 0.05, 0.1]),
    transpose: 12,
    stack: [0],
    oscillators: [1.002, 1 / 1.002],
    gains: [0.19, 0.06],
    envelope: { attackMs: 12, fall: 0.8, releaseMs: 120 },
    ringSteps: 0,
  },
  kick: drum(0.75, 6, (t) => Math.sin(2 * Math.PI * (48 * t + 4.5 * (1 - Math.exp(-t / 0.03))))),
  snare: drum(0.36, 9, (t, n) => 0.6 * noise(n) + 0.5 * Math.sin(2 * Math.PI * 185 * t)),
  hat: drum(0.24, 30, (_, n) => (noise(n) - noise(n - 1)) / 2),
};

export function sampleCount(lengthMs: number): number {
  return Math.round(lengthMs * SAMPLES_PER_MS);
}

/** Renders the samples from `from` up to `to`, exclusive. Splitting a range does not change its samples. */
export function renderSamples(composition: Composition, from: number, to: number): Int16Array<ArrayBuffer> {
  const mix = new Float32Array(to - from);
  const stepLength = composition.stepMs * SAMPLES_PER_MS;
  const firstStep = Math.max(0, Math.floor(from / stepLength) - LOOK_BACK_STEPS);
  for (let step = firstStep; step * stepLength < to; step++) {
    for (const note of notesAt(composition, step)) addNote(mix, from, note);
  }
  return master(mix, from, sampleCount(composition.lengthMs));
}

function notesAt(composition: Composition, step: number): Note[] {
  const section = Math.floor(step / STEPS_PER_BAR / BARS_PER_SECTION);
  return cycle(composition.sections, section).flatMap((part) => notesOf(composition, part, step));
}

/** The notes that a part starts at a step: one for each note of a chord, oscillator and echo. */
function notesOf(composition: Composition, part: Part, step: number): Note[] {
  const bar = Math.floor(step / STEPS_PER_BAR);
  const stepInBar = step % STEPS_PER_BAR;
  const pattern = cycle(composition.parts[part], bar);
  const mark = pattern.charAt(stepInBar);
  if (mark === '.') return [];

  const voice = VOICES[part];
  const stepLength = composition.stepMs * SAMPLES_PER_MS;
  const stepsToNext = pattern.slice(stepInBar + 1).search(/\d|$/) + 1;
  const heldLength = Math.max(voice.ringSteps, stepsToNext) * stepLength;
  const pitchedLength = heldLength + voice.envelope.releaseMs * SAMPLES_PER_MS;
  const length = voice.transpose === undefined ? TABLE_SIZE : pitchedLength;
  const accent = stepInBar % 4 === 0 ? 1 : 0.8;
  return voice.stack.flatMap((height) => {
    const stride = strideOf(composition, voice, bar, Number(mark) + height);
    return voice.oscillators.flatMap((ratio) =>
      voice.gains.map((gain, echo) => ({
        voice,
        start: (step + echo * ECHO_STEPS) * stepLength,
        length,
        stride: stride * ratio,
        gain: gain * accent,
      })),
    );
  });
}

function strideOf({ chords, scale, tonic }: Composition, voice: Voice, bar: number, height: number): number {
  if (voice.transpose === undefined) return 1;
  const root = cycle(chords, bar);
  // A root in the upper half of the octave moves below the tonic, so that the chords stay close together.
  const degree = (root > 3 ? root - scale.length : root) + height;
  const octave = Math.floor(degree / scale.length);
  const key = tonic + voice.transpose + 12 * octave + cycle(scale, degree - octave * scale.length);
  return (440 * 2 ** ((key - 69) / 12) * TABLE_SIZE) / SAMPLE_RATE;
}

function addNote(mix: Float32Array, from: number, { voice, start, length, stride, gain }: Note): void {
  const { table, envelope } = voice;
  const attack = envelope.attackMs * SAMPLES_PER_MS;
  const release = envelope.releaseMs * SAMPLES_PER_MS;
  const fall = envelope.fall / SAMPLE_RATE;
  const shift = start - from;
  const end = Math.min(length, mix.length - shift);
  for (let n = Math.max(0, -shift); n < end; n++) {
    let amplitude = gain / (1 + n * fall) ** 2;
    if (n < attack) amplitude *= n / attack;
    if (length - n < release) amplitude *= (length - n) / release;
    const sample = table[(n * stride) & (TABLE_SIZE - 1)] ?? 0;
    mix[n + shift] = (mix[n + shift] ?? 0) + sample * amplitude;
  }
}

/** Fades the track in and out, and limits peaks softly, so that nothing clips. */
function master(mix: Float32Array, from: number, total: number): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(mix.length);
  const fadeOut = Math.min(FADE_OUT, total / 4);
  for (let i = 0; i < mix.length; i++) {
    const fade = Math.min(1, (from + i) / FADE_IN, (total - from - i) / fadeOut);
    const x = Math.max(-3, Math.min(3, (mix[i] ?? 0) * fade));
    // This is the Padé approximation of tanh, which reaches 1 at 3.
    samples[i] = Math.round((CEILING * 32_767 * x * (27 + x * x)) / (27 + 9 * x * x));
  }
  return samples;
}

/** One cycle of a tone, made from the amplitudes of its harmonics. */
function harmonics(amplitudes: readonly number[]): Float32Array {
  return Float32Array.from({ length: TABLE_SIZE }, (_, n) =>
    amplitudes.reduce((sum, a, i) => sum + a * Math.sin((2 * Math.PI * (i + 1) * n) / TABLE_SIZE), 0),
  );
}

function drum(gain: number, fall: number, wave: (seconds: number, n: number) => number): Voice {
  const table = Float32Array.from({ length: TABLE_SIZE }, (_, n) => wave(n / SAMPLE_RATE, n));
  const envelope = { attackMs: 1, fall, releaseMs: 60 };
  return { table, stack: [0], oscillators: [1], gains: [gain], envelope, ringSteps: 0 };
}

function noise(n: number): number {
  return Bun.hash.xxHash32(`noise ${n}`) / 2 ** 31 - 1;
}

/** The item at an index that may be past the end, because the list repeats. */
function cycle<Item>(items: readonly Item[], index: number): Item {
  const item = items[index % items.length];
  if (item === undefined) throw new Error('A composition has an empty list');
  return item;
}
