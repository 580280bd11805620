/** Measures the length and loudness of a WAV file. */

export interface WavDescription {
  readonly seconds: number;
  /** The root mean square of the samples, where full scale is 1. */
  readonly loudness: number;
}

/** @param wav a RIFF file of 16-bit PCM with a header of 44 bytes */
export function describeWav(wav: Buffer): WavDescription {
  const bytesPerSecond = wav.readUInt32LE(28);
  const data = wav.subarray(44);
  let squares = 0;
  for (let at = 0; at + 1 < data.length; at += 2) squares += (data.readInt16LE(at) / 32_768) ** 2;
  return { seconds: data.length / bytesPerSecond, loudness: Math.sqrt(squares / (data.length / 2)) };
}
