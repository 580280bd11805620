/** Measures a WAV file, to tell music from silence. */

export interface WavDescription {
  readonly seconds: number;
  /** Root mean square of the samples, full scale being 1. */
  readonly loudness: number;
}

/** @param wav 16-bit PCM with the plain header of 44 bytes (RIFF, WAVE) */
export function describeWav(wav: Buffer): WavDescription {
  const bytesPerSecond = wav.readUInt32LE(28);
  const data = wav.subarray(44);
  let squares = 0;
  for (let at = 0; at + 1 < data.length; at += 2) squares += (data.readInt16LE(at) / 32_768) ** 2;
  return { seconds: data.length / bytesPerSecond, loudness: Math.sqrt(squares / (data.length / 2)) };
}
