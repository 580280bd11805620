/** Computes the outline of a track's loudness, from which its waveform is drawn. */

export type Peaks = readonly number[];

export const OUTLINE_BARS = 600;
/** Decoding at this low rate saves memory, and is enough for an outline. */
export const SAMPLE_RATE = 8_000;

/** Undefined if the browser cannot decode the audio. */
export async function peaksOf(audio: ArrayBuffer): Promise<Peaks | undefined> {
  const samples = await decodeAt8kHz(audio);
  return samples && outline(samples, OUTLINE_BARS);
}

/** The first channel. Undefined if the browser cannot decode the audio. */
export async function decodeAt8kHz(audio: ArrayBuffer): Promise<Float32Array | undefined> {
  try {
    const decoded = await new OfflineAudioContext(1, 1, SAMPLE_RATE).decodeAudioData(audio);
    return decoded.getChannelData(0);
  } catch {
    return undefined;
  }
}

/** The loudest sample of each of `count` equal parts, relative to the loudest sample of all. */
export function outline(samples: Float32Array, count: number): Peaks {
  const peaks = Array.from({ length: count }, (_, index) => {
    const part = samples.subarray(
      Math.floor((index * samples.length) / count),
      Math.ceil(((index + 1) * samples.length) / count),
    );
    return loudestOf(part);
  });
  const loudest = Math.max(...peaks) || 1;
  return peaks.map((peak) => peak / loudest);
}

/** A plain loop, because there are millions of samples, and the page must not stop for them. */
export function loudestOf(samples: Float32Array): number {
  let loudest = 0;
  for (const sample of samples) {
    const loudness = Math.abs(sample);
    if (loudness > loudest) loudest = loudness;
  }
  return loudest;
}
