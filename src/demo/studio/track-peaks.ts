/** Finds the outlines of tracks: among those that this browser keeps, or from the audio. */

import { type Peaks, peaksOf } from './peaks.ts';
import type { PeaksStore } from './peaks-store.ts';
import type { Track } from './playback.ts';

export interface TrackPeaks {
  /** Computes the outline from audio that is already loaded. */
  keep(track: Track, audio: Blob): Promise<Peaks | undefined>;
  /** Fetches the track if its outline is not known. Undefined if the track is too long or cannot be fetched. */
  of(track: Track): Promise<Peaks | undefined>;
  /** Forgets all outlines, because another person may sign in next. */
  forget(): void;
}

export interface TrackPeaksOptions {
  readonly store: PeaksStore;
  /** Waits until the player has what it needs of the track. False if it has another track before that. */
  readonly untilLoaded: () => Promise<boolean>;
}

/** Longer tracks are not fetched just for their waveform. */
const MAX_FETCHED_SECONDS = 180;

export function createTrackPeaks({ store, untilLoaded }: TrackPeaksOptions): TrackPeaks {
  async function remember(id: string, peaks: Peaks | undefined): Promise<Peaks | undefined> {
    if (peaks) await store.write(id, peaks);
    return peaks;
  }

  return {
    keep: async (track, audio) => remember(track.id, await peaksOf(await audio.arrayBuffer())),
    async of(track) {
      // The player is asked now: later it may be about another track.
      const loading = untilLoaded();
      const kept = await store.read(track.id);
      if (kept || track.seconds > MAX_FETCHED_SECONDS || !(await loading)) return kept;
      return remember(track.id, await fetchPeaks(track));
    },
    forget: () => void store.clear(),
  };
}

async function fetchPeaks({ url, crossOrigin }: Track): Promise<Peaks | undefined> {
  try {
    const credentials = crossOrigin === 'use-credentials' ? 'include' : 'omit';
    const response = await fetch(url, { credentials, priority: 'low' });
    return response.ok ? await peaksOf(await response.arrayBuffer()) : undefined;
  } catch {
    return undefined;
  }
}
