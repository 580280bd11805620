/** Opens again, after a reload of the page, the track that was open before, where it was. */

import type { Memory } from './browser-memory.ts';
import type { Track } from './playback.ts';
import type { Player } from './player.ts';

export interface RememberedTrack {
  /** Opens it if it is one of these, and no other track is open. Only once. */
  restore(tracks: readonly Track[]): void;
}

export interface RememberedTrackOptions {
  readonly window: Window;
  /** The tab's own, because each tab has a player. */
  readonly tab: Memory;
  readonly player: Pick<Player, 'openId' | 'position' | 'seek'>;
  readonly open: (track: Track) => void;
}

const KEY = 'studio.open-track';

export function createRememberedTrack({
  window,
  tab,
  player,
  open,
}: RememberedTrackOptions): RememberedTrack {
  let [, at, id] = /^([\d.]+) (.+)$/.exec(tab.getItem(KEY) ?? '') ?? [];
  // Nothing is kept while the page is open, so a sign-out has nothing to remove.
  tab.removeItem(KEY);
  window.addEventListener('pagehide', () => {
    if (player.openId !== undefined) tab.setItem(KEY, `${player.position} ${player.openId}`);
  });
  return {
    restore(tracks) {
      const track = player.openId === undefined && tracks.find((each) => each.id === id);
      if (!track) return;
      id = undefined;
      open(track);
      player.seek(Number(at));
    },
  };
}
