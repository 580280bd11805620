/** Reads the samples of a WAV file as one channel of a low rate, which suffices for key and tempo. */

export interface Samples {
  readonly values: Float32Array;
  /** Per second. */
  readonly rate: number;
  /** Of the whole file. */
  readonly seconds: number;
}

/** Says in words what is wrong with a recording. */
export class UnusableRecording extends Error {}

/** What a file begins with that is no WAV file. `....` is a length. */
const OTHER_FORMATS = [
  [/^ID3|^\xff[\xe2-\xfb]/, 'an MP3'],
  [/^....ftyp/s, 'an MP4 or M4A'],
  [/^OggS/, 'an Ogg'],
  [/^fLaC/, 'a FLAC'],
  [/^.E\xdf\xa3/s, 'a WebM'],
  [/^FORM....AIF/s, 'an AIFF'],
] as const;
const WAV = /^RIFF....WAVE/s;

const PCM = 1;
const FLOAT = 3;
/** The format is in the extension that follows. */
const EXTENSIBLE = 0xfffe;
const LOWEST_RATE = 8_000;
/** The rest of a longer recording is not listened to. */
const HEARD_SECONDS = 60;

/** @throws UnusableRecording */
export function readWavSamples(file: Buffer): Samples {
  const beginning = file.toString('latin1', 0, 12);
  if (!WAV.test(beginning)) {
    const [, name] = OTHER_FORMATS.find(([pattern]) => pattern.test(beginning)) ?? [];
    throw new UnusableRecording(
      name ? `This is ${name} file. Only WAV files can be heard here.` : 'This is not a WAV file.',
    );
  }
  const chunks = chunksOf(file);
  const [format, data] = [chunks.get('fmt '), chunks.get('data')];
  if (!format || format.length < 16 || !data) throw new UnusableRecording('This WAV file is not complete.');
  const named = format.readUInt16LE(0);
  const code = named === EXTENSIBLE && format.length >= 26 ? format.readUInt16LE(24) : named;
  const [channels, rate] = [format.readUInt16LE(2), format.readUInt32LE(4)];
  const bytes = format.readUInt16LE(14) / 8;
  const read = sampleReader(data, code, bytes);
  if (!read || channels === 0 || rate < LOWEST_RATE)
    throw new UnusableRecording('Only WAV files of uncompressed audio can be heard here.');
  const frame = channels * bytes;
  const frames = Math.floor(data.length / frame);
  const group = Math.floor(rate / LOWEST_RATE);
  const groups = Math.floor(Math.min(frames, HEARD_SECONDS * rate) / group);
  const values = Float32Array.from({ length: groups }, (_, index) => {
    let sum = 0;
    const end = (index + 1) * group * frame;
    for (let at = index * group * frame; at < end; at += bytes) sum += read(at);
    return sum / (group * channels);
  });
  return { values, rate: rate / group, seconds: frames / rate };
}

/** A file that was still being written may give its data a length that they do not have. */
function chunksOf(file: Buffer): ReadonlyMap<string, Buffer> {
  const chunks = new Map<string, Buffer>();
  for (let at = 12; at + 8 <= file.length; ) {
    const size = file.readUInt32LE(at + 4);
    chunks.set(file.toString('latin1', at, at + 4), file.subarray(at + 8, at + 8 + size));
    // Each begins at an even place.
    at += 8 + size + (size % 2);
  }
  return chunks;
}

/** Of samples from -1 to 1. */
function sampleReader(data: Buffer, code: number, bytes: number): ((at: number) => number) | undefined {
  if (code === FLOAT && bytes === 4) return (at) => data.readFloatLE(at);
  if (code === FLOAT && bytes === 8) return (at) => data.readDoubleLE(at);
  if (code !== PCM) return undefined;
  if (bytes === 1) return (at) => data.readUInt8(at) / 128 - 1;
  if (bytes === 2) return (at) => data.readInt16LE(at) / 2 ** 15;
  if (bytes === 3 || bytes === 4) return (at) => data.readIntLE(at, bytes) / 2 ** (8 * bytes - 1);
  return undefined;
}
