/** The outlines of the tracks that were heard in this tab. */

import { type Peaks, peaksOf } from './peaks.ts';
import type { Track } from './playback.ts';

export interface TrackPeaks {
  /** Makes the outline from a track that is here already. */
  keep(track: Track, audio: Blob): Promise<Peaks | undefined>;
  /** Fetches the track for it where it must. Undefined for one that is too long for that, or not there. */
  of(track: Track): Promise<Peaks | undefined>;
}

/** A waveform is not worth loading more than this. */
const MAX_FETCHED_SECONDS = 180;

export function createTrackPeaks(): TrackPeaks {
  const known = new Map<string, Promise<Peaks | undefined>>();
  const learn = (id: string, learning: Promise<Peaks | undefined>) => {
    known.set(id, learning);
    return learning;
  };
  return {
    keep: (track, audio) => learn(track.id, audio.arrayBuffer().then(peaksOf)),
    async of(track) {
      const earlier = await known.get(track.id);
      if (earlier || track.seconds > MAX_FETCHED_SECONDS) return earlier;
      return learn(track.id, fetchPeaks(track));
    },
  };
}

async function fetchPeaks({ url, crossOrigin }: Track): Promise<Peaks | undefined> {
  try {
    const credentials = crossOrigin === 'use-credentials' ? 'include' : 'omit';
    const response = await fetch(url, { credentials });
    return response.ok ? await peaksOf(await response.arrayBuffer()) : undefined;
  } catch {
    return undefined;
  }
}
