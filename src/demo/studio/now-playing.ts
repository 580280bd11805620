/** Shows outside the page what plays: in the tab's title, on the lock screen, and to the keys of a keyboard for media. */

import type { Playback, Track } from './playback.ts';
import type { Player } from './player.ts';
import type { Text } from './text.ts';

export interface NowPlaying {
  show(track: Track | undefined, isPlaying: boolean): void;
  /** Shows how far it has got: both are in seconds. */
  showPosition(position: number, duration: number): void;
}

export interface NowPlayingOptions {
  readonly title: Element | null;
  readonly text: Text;
  /** `navigator.mediaSession`, which some browsers lack. */
  readonly mediaSession: MediaSession | undefined;
  readonly player: Pick<Player, 'seek' | 'skip' | 'step'> & Pick<Playback, 'play' | 'pause'>;
}

const SKIP_SECONDS = 10;

export function createNowPlaying({ title, text, mediaSession, player }: NowPlayingOptions): NowPlaying {
  const actions: readonly (readonly [MediaSessionAction, MediaSessionActionHandler])[] = [
    ['play', player.play],
    ['pause', player.pause],
    ['stop', player.pause],
    ['previoustrack', () => player.step(-1)],
    ['nexttrack', () => player.step(1)],
    ['seekbackward', ({ seekOffset }) => player.skip(-(seekOffset ?? SKIP_SECONDS))],
    ['seekforward', ({ seekOffset }) => player.skip(seekOffset ?? SKIP_SECONDS)],
    ['seekto', ({ seekTime }) => player.seek(seekTime ?? 0)],
  ];
  /** What the device shows, as one text. */
  let shown: string | undefined;

  function connectKeys(session: MediaSession, isOpen: boolean): void {
    for (const [action, handler] of actions) {
      try {
        session.setActionHandler(action, isOpen ? handler : null);
      } catch {
        // This browser does not know the action.
      }
    }
  }

  function showOnDevice(session: MediaSession, track: Track | undefined, isPlaying: boolean): void {
    session.playbackState = isPlaying ? 'playing' : track ? 'paused' : 'none';
    const described = track && JSON.stringify([track.title, track.author, track.cover]);
    if (shown === described) return;
    shown = described;
    session.metadata = track ? metadataOf(track) : null;
    connectKeys(session, track !== undefined);
  }

  function metadataOf({ title, author, cover }: Track): MediaMetadata {
    const artwork = [{ src: cover, sizes: '256x256', type: 'image/png' }];
    return new MediaMetadata({ title, artist: author || text.say('title'), artwork });
  }

  function showTitle(element: Element, track: Track | undefined): void {
    if (track) text.write(element, 'titlePlaying', { track: track.title });
    else text.write(element, 'title');
  }

  return {
    show(track, isPlaying) {
      if (title) showTitle(title, isPlaying ? track : undefined);
      if (mediaSession) showOnDevice(mediaSession, track, isPlaying);
    },
    showPosition(position, duration) {
      // Some browsers that have the rest lack this.
      if (duration > 0)
        mediaSession?.setPositionState?.({ duration, position: Math.min(position, duration) });
      else mediaSession?.setPositionState?.();
    },
  };
}
