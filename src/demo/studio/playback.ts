/** Decides what the `audio` element plays: a track's stream while it arrives, and its file as soon as it has to. */

import type { TextKey } from './english.ts';

export interface Track {
  readonly id: string;
  readonly title: string;
  /** As ordered; a file's own length counts once it is known. */
  readonly seconds: number;
  /** The whole file, which answers ranges. */
  readonly url: string;
  readonly crossOrigin: 'use-credentials' | 'anonymous';
}

export interface Playback {
  /** The track's length, as far as it is known. */
  readonly seconds: number;
  open(track: Track): void;
  /** Plays a stream that still arrives; without one it waits for `complete`. */
  openArriving(track: Track, streamUrl: string | undefined): void;
  /** The arriving track is complete: from now on it can be searched and heard again. */
  complete(): void;
  play(): void;
  pause(): void;
  seek(seconds: number): void;
  close(): void;
}

export interface PlaybackEvents {
  readonly onArriving: (isArriving: boolean) => void;
  /** Why it does not play; undefined when that is over. */
  readonly onProblem: (problem: TextKey | undefined) => void;
}

/** A stream is heard once and cannot be searched: the file takes over when that is wanted. */
type Source = 'arriving' | 'arrived' | 'file';

export function createPlayback(audio: HTMLAudioElement, { onArriving, onProblem }: PlaybackEvents): Playback {
  let track: Track | undefined;
  let source: Source = 'file';
  /** What a person wants, also while there is nothing to play: `paused` becomes true by itself after an error. */
  let isWanted = false;

  function begin(opened: Track | undefined, from: Source, wanted: boolean): void {
    track = opened;
    isWanted = wanted;
    onProblem(undefined);
    become(from);
    audio.removeAttribute('src');
  }

  function become(next: Source): void {
    source = next;
    onArriving(next === 'arriving');
  }

  function useFile(at: number): void {
    if (!track) return;
    become('file');
    audio.crossOrigin = track.crossOrigin;
    audio.src = track.url;
    // Before the file is here, this is where it begins.
    audio.currentTime = at;
    if (isWanted) void start();
  }

  async function start(): Promise<void> {
    try {
      await audio.play();
      onProblem(undefined);
    } catch (error) {
      // Any other refusal is told by the element's `error` event, or is due to what has taken its place.
      if (error instanceof Error && error.name === 'NotAllowedError') onProblem('pressListen');
    }
  }

  audio.addEventListener('ended', () => {
    isWanted = false;
  });
  audio.addEventListener('error', () => {
    // A stream may break off where the file does not: a worker does not live for ever.
    if (source === 'arrived') useFile(audio.currentTime);
    else onProblem(source === 'arriving' ? 'afterArrival' : 'notPlayable');
  });

  return {
    get seconds() {
      return Number.isFinite(audio.duration) ? audio.duration : (track?.seconds ?? 0);
    },
    open(next) {
      begin(next, 'file', false);
      useFile(0);
    },
    openArriving(next, streamUrl) {
      begin(next, 'arriving', true);
      if (streamUrl === undefined) {
        audio.load();
        onProblem('afterArrival');
        return;
      }
      audio.src = streamUrl;
      void start();
    },
    complete() {
      become('arrived');
      if (audio.error || !audio.hasAttribute('src')) useFile(audio.currentTime);
    },
    play() {
      isWanted = true;
      const isSpent = source === 'arrived' ? audio.ended || audio.error : source === 'file' && audio.error;
      if (isSpent) useFile(audio.ended ? 0 : audio.currentTime);
      else void start();
    },
    pause() {
      isWanted = false;
      audio.pause();
    },
    seek(seconds) {
      if (source === 'arrived') useFile(seconds);
      else audio.currentTime = seconds;
    },
    close() {
      begin(undefined, 'file', false);
      audio.load();
    },
  };
}
