/** Composes a tune from a prompt, as plain data: tempo, key, chords, and patterns for each part. */

import type { Heard } from '../recording/hearing.ts';

/** These values determine a track completely, so nothing else about it is stored. */
export interface TrackRequest {
  prompt: string;
  model: string;
  lengthMs: number;
  /** Of a recording: what the prompt does not decide then. */
  heard?: Heard | undefined;
}

export type Part = 'pad' | 'bass' | 'arpeggio' | 'melody' | 'kick' | 'snare' | 'hat';

/**
 * One bar of sixteen steps. A dot is a rest. A digit starts a note that is this many scale steps above the root
 * of the bar's chord; a drum has no pitch, so any digit makes it sound.
 */
export type Pattern = string;

export interface Composition {
  lengthMs: number;
  /** The length of a sixteenth note, in whole milliseconds: every note begins at a sample. */
  stepMs: number;
  /** The MIDI note number of the tonic. */
  tonic: number;
  /** The seven notes of an octave, in semitones above the tonic. */
  scale: readonly number[];
  /** The scale step of the root of each bar's chord; the progression repeats. */
  chords: readonly number[];
  /** The bars of each part; they repeat. */
  parts: Record<Part, readonly Pattern[]>;
  /** The parts that play in each section of four bars; the sections repeat. */
  sections: readonly (readonly Part[])[];
}

export const STEPS_PER_BAR = 16;
export const BARS_PER_SECTION = 4;
const STEPS_PER_BEAT = 4;

const STEP_MS = [110, 118, 125, 132, 140, 150, 160, 170];
const TONICS = [53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64];

// No progression uses its mode's diminished chord, because it sounds dissonant.
const MODES = {
  ionian: {
    scale: [0, 2, 4, 5, 7, 9, 11],
    progressions: ['0453', '0534', '5304', '3045', '0354'],
  },
  mixolydian: { scale: [0, 2, 4, 5, 7, 9, 10], progressions: ['0630', '0436', '0363'] },
  dorian: { scale: [0, 2, 3, 5, 7, 9, 10], progressions: ['0363', '0236', '0623'] },
  aeolian: { scale: [0, 2, 3, 5, 7, 8, 10], progressions: ['0526', '0362', '0656', '5604'] },
};
const MODES_OF_KEYS = { major: MODES.ionian, minor: MODES.aeolian };

const PADS = ['0...............', '0.......0.......', '0.....0.....0...'];
const BASSES = [
  '0.......0.....4.',
  '0..0..0.0..0..7.',
  '0...0...0...4...',
  '0.....0...0.7...',
  '0.7.0.7.0.7.0.7.',
];
const ARPEGGIOS = [
  '0.4.2.4.7.4.2.4.',
  '0247420472402472',
  '0..2..4..7..4.2.',
  '7.4.2.0.7.4.2.4.',
  '0.2.4.7.9.7.4.2.',
  '..4.2.7...4.2.9.',
];
const DRUMS = [
  { kick: '0...0...0...0...', snare: '....0.......0...', hat: '..0...0...0...0.' },
  { kick: '0.......0.0.....', snare: '....0.......0...', hat: '0.0.0.0.0.0.0.0.' },
  { kick: '0..0..0...0.....', snare: '....0.......0..0', hat: '0.0.0.0.0.0.0.00' },
  { kick: '0.....0.........', snare: '........0.......', hat: '0...0.0.0...0.0.' },
];

const MOTIF_RHYTHMS = ['0...0.0.0.......', '0..0..0...0.....', '..0.0.0.0...0...', '0.....0.0...0...'];
const MELODY_FORM = ['call', 'answer', 'call', 'rest', 'call', 'answer', 'turn', 'rest'];

const QUIET: Part[] = ['pad', 'arpeggio', 'bass', 'hat'];
const STEADY: Part[] = [...QUIET, 'kick', 'snare'];
const FULL: Part[] = [...STEADY, 'melody'];
const BREAK: Part[] = ['pad', 'bass', 'melody', 'hat'];
const FORMS = [
  [QUIET, STEADY, FULL, FULL, BREAK, FULL],
  [STEADY, FULL, FULL, BREAK, STEADY, FULL],
  [BREAK, FULL, FULL, STEADY, QUIET, FULL],
];

/** The same prompt and model always give the same tune; the length only sets where it ends. */
export function composeTrack({ prompt, model, lengthMs, heard }: TrackRequest): Composition {
  const choose: Choose = (name, options) => {
    const hash = Bun.hash.xxHash32(JSON.stringify([model, prompt, name]));
    const choice = options[hash % options.length];
    if (choice === undefined) throw new Error(`Nothing to choose from for "${name}"`);
    return choice;
  };
  const { key, tempo } = heard ?? {};
  const { scale, progressions } = key ? MODES_OF_KEYS[key.mode] : choose('mode', Object.values(MODES));
  const tonics = key ? TONICS.filter((tonic) => tonic % 12 === key.tonic) : TONICS;
  return {
    lengthMs,
    stepMs: tempo === undefined ? choose('tempo', STEP_MS) : Math.round(60_000 / tempo / STEPS_PER_BEAT),
    tonic: choose('key', tonics),
    scale,
    chords: Array.from(choose('progression', progressions), Number),
    parts: {
      pad: [choose('pad', PADS)],
      bass: [choose('bass', BASSES)],
      arpeggio: [choose('arpeggio', ARPEGGIOS), choose('second arpeggio', ARPEGGIOS)],
      melody: MELODY_FORM.map((motif) => composeMotif(motif, choose)),
      ...mapDrums(choose('drums', DRUMS)),
    },
    sections: choose('form', FORMS),
  };
}

type Choose = <Option>(name: string, options: readonly Option[]) => Option;

function mapDrums(drums: Record<'kick' | 'snare' | 'hat', Pattern>) {
  return { kick: [drums.kick], snare: [drums.snare], hat: [drums.hat] };
}

/** The half bars have chord tones; the notes between them move by one or two steps of the scale. */
function composeMotif(motif: string, choose: Choose): Pattern {
  if (motif === 'rest') return `${choose('last note', [0, 2, 4])}...............`;
  let height = choose(`${motif} start`, [2, 4, 7]);
  return Array.from(choose(`${motif} rhythm`, MOTIF_RHYTHMS), (mark, step) => {
    if (mark === '.') return mark;
    if (step % 8 === 0) height = choose(`${motif} tone ${step}`, [2, 4, 4, 7]);
    else height = Math.min(7, Math.max(0, height + choose(`${motif} step ${step}`, [-2, -1, 1, 2])));
    return String(height);
  }).join('');
}
