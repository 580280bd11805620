/** Caches the outlines of the tracks that were opened in this tab. */

import { type Peaks, peaksOf } from './peaks.ts';
import type { Track } from './playback.ts';

export interface TrackPeaks {
  /** Computes the outline from audio that is already loaded. */
  keep(track: Track, audio: Blob): Promise<Peaks | undefined>;
  /** Fetches the track if its outline is not cached. Undefined if the track is too long or cannot be fetched. */
  of(track: Track): Promise<Peaks | undefined>;
}

/** Longer tracks are not fetched just for their waveform. */
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
