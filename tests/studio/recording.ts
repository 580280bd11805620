/** Makes recordings of a simple tune, as a person would bring them along. */

const HEADER_BYTES = 44;
const NOTE_SHARE = 0.8;

export interface Tune {
  /** MIDI numbers, one for each beat; they repeat. */
  readonly notes: readonly number[];
  readonly bpm: number;
  readonly seconds?: number;
  readonly rate?: number;
  readonly channels?: number;
  /** 8, 16, 24 or 32 of PCM; -32 is floating point. */
  readonly bits?: number;
}

/** The tonic sounds most often, then the fifth and the third. */
export const A_MINOR = [57, 60, 64, 57, 62, 60, 59, 57, 65, 64, 60, 57, 55, 59, 64, 57];
export const E_FLAT_MAJOR = [63, 67, 70, 63, 68, 67, 65, 63, 72, 70, 67, 63, 62, 65, 70, 63];

export function recordTune({ notes, bpm, seconds = 12, rate = 44_100, channels = 2, bits = 16 }: Tune) {
  const [frames, bytes] = [Math.round(seconds * rate), Math.abs(bits) / 8];
  const wav = Buffer.alloc(HEADER_BYTES + frames * channels * bytes);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write('WAVEfmt ', 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(bits < 0 ? 3 : 1, 20);
  wav.writeUInt16LE(channels, 22);
  wav.writeUInt32LE(rate, 24);
  wav.writeUInt32LE(rate * channels * bytes, 28);
  wav.writeUInt16LE(channels * bytes, 32);
  wav.writeUInt16LE(8 * bytes, 34);
  wav.write('data', 36);
  wav.writeUInt32LE(wav.length - HEADER_BYTES, 40);
  const beat = 60 / bpm;
  for (let frame = 0; frame < frames; frame++) {
    const time = frame / rate;
    const inNote = time % beat;
    const note = notes[Math.floor(time / beat) % notes.length] ?? 0;
    const tone = Math.sin(2 * Math.PI * 440 * 2 ** ((note - 69) / 12) * time);
    const value = inNote < NOTE_SHARE * beat ? 0.6 * tone * Math.exp(-3 * inNote) : 0;
    for (let channel = 0; channel < channels; channel++)
      write(wav, value, HEADER_BYTES + (frame * channels + channel) * bytes, bits);
  }
  return wav;
}

function write(wav: Buffer, value: number, at: number, bits: number): void {
  if (bits < 0) wav.writeFloatLE(value, at);
  else if (bits === 8) wav.writeUInt8(Math.round(128 + 127 * value), at);
  else wav.writeIntLE(Math.round(value * (2 ** (bits - 1) - 1)), at, bits / 8);
}
