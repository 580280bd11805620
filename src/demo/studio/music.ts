/** Assembles all that plays a track: player, waveform, volume, and the keys of page and device. */

import type { Memory } from './browser-memory.ts';
import { createKeysDialog } from './keys-dialog.ts';
import { createNowPlaying } from './now-playing.ts';
import { part } from './parts.ts';
import { openPeaksStore } from './peaks-store.ts';
import type { Track } from './playback.ts';
import { createPlayer, type Player, type PlayerOptions } from './player.ts';
import { connectPlayerKeys } from './player-keys.ts';
import { untilLoaded } from './spare-network.ts';
import type { Text } from './text.ts';
import { createTrackPeaks, type TrackPeaks } from './track-peaks.ts';
import { connectVolume } from './volume.ts';
import { createWaveform } from './waveform.ts';

export interface Music {
  readonly player: Player;
  readonly peaks: TrackPeaks;
  /** Makes a track ready to play, and draws its waveform when the player has what it needs. */
  open(track: Track): void;
}

export interface MusicOptions extends Pick<PlayerOptions, 'onChange' | 'onStep' | 'onEnd'> {
  readonly text: Text;
  readonly memory: Memory;
}

export function createMusic(
  document: Document,
  { text, memory, onChange, onStep, onEnd }: MusicOptions,
): Music {
  const root = part(document, 'player');
  const nonce = document.querySelector('script')?.nonce ?? '';
  const player = createPlayer(root, {
    text,
    waveform: createWaveform(part(root, 'waveform'), nonce),
    onChange(track, isPlaying) {
      nowPlaying.show(track, isPlaying);
      onChange(track, isPlaying);
    },
    onPosition: (seconds, of) => nowPlaying.showPosition(seconds, of),
    onStep,
    onEnd,
  });
  const nowPlaying = createNowPlaying({
    title: document.querySelector('title'),
    text,
    mediaSession: navigator.mediaSession,
    player,
  });
  connectVolume(root, { text, memory });
  const keys = {
    toggle: player.toggle,
    skip: player.skip,
    mute: () => part(root, 'mute').click(),
  };
  connectPlayerKeys(
    document,
    keys,
    createKeysDialog(document, { memory }),
    () => root.dataset['state'] !== 'empty',
  );
  const peaks = createTrackPeaks({
    store: openPeaksStore(indexedDB),
    untilLoaded: () => untilLoaded(part(root, 'audio')),
  });
  return {
    player,
    peaks,
    open(track) {
      player.open(track);
      void peaks.of(track).then((outline) => player.drawPeaks(track.id, outline));
    },
  };
}
