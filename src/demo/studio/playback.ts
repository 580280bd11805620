/** Decides what the `audio` element plays: a track's stream while it arrives, or its file when that is needed. */

import type { TextKey } from './english.ts';

export interface Track {
  readonly id: string;
  readonly title: string;
  /** Who has made it. Empty if that is not known. */
  readonly author: string;
  /** The address of its cover. */
  readonly cover: string;
  /** The ordered length. The length of the audio replaces it as soon as it is known. */
  readonly seconds: number;
  /** The address of the complete file, which supports ranges. */
  readonly url: string;
  readonly crossOrigin: 'use-credentials' | 'anonymous';
}

/** A stream of a track that is still arriving. */
export interface LiveSource {
  readonly url: string;
  /** Where in the track it begins, in seconds. */
  readonly from: number;
}

/** Begins a stream at that time, or where what is there ends. Undefined if there can be none. */
export type Listen = (seconds: number) => LiveSource | undefined;

export interface Playback {
  /** The length of the audio, or the ordered length until the audio's is known. */
  readonly seconds: number;
  /** The time that is heard now, in seconds. */
  readonly position: number;
  /** Whether a person listens, or waits for the sound. */
  readonly isListening: boolean;
  open(track: Track): void;
  /** Plays the stream of a track that is still arriving. Without a stream, waits for `complete`. */
  openArriving(track: Track, listen: Listen): void;
  /** The arriving track is complete: from now on all of it can be sought in and replayed. */
  complete(): void;
  play(): void;
  pause(): void;
  seek(seconds: number): void;
  close(): void;
}

export interface PlaybackEvents {
  readonly onArriving: (isArriving: boolean) => void;
  /** Called with the reason why it does not play, and with undefined when the problem is over. */
  readonly onProblem: (problem: TextKey | undefined) => void;
}

/** A shorter wait for data is not worth a text. */
const STALL_MS = 500;

/** A stream plays only once and has no seeking, so another one or the file replaces it for a seek or a replay. */
type Source = 'arriving' | 'arrived' | 'file';

export function createPlayback(audio: HTMLAudioElement, { onArriving, onProblem }: PlaybackEvents): Playback {
  let track: Track | undefined;
  let source: Source = 'file';
  let listen: Listen = () => undefined;
  /** Where the element's source begins in the track, in seconds. */
  let begins = 0;
  /** Whether the person wants to listen. `audio.paused` does not say so, because it is also true after an error. */
  let isWanted = false;
  let stall: ReturnType<typeof setTimeout> | undefined;

  function begin(opened: Track | undefined, from: Source, wanted: boolean): void {
    track = opened;
    isWanted = wanted;
    begins = 0;
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
    begins = 0;
    audio.crossOrigin = track.crossOrigin;
    audio.src = track.url;
    // Until the file is loaded, this sets the position at which it starts.
    audio.currentTime = at;
    if (isWanted) void start();
  }

  /** Returns whether there is a stream from there. */
  function useStream(at: number): boolean {
    const stream = listen(at);
    if (!stream) return false;
    begins = stream.from;
    audio.src = stream.url;
    if (isWanted) void start();
    return true;
  }

  function position(): number {
    return begins + audio.currentTime;
  }

  async function start(): Promise<void> {
    try {
      await audio.play();
      onProblem(undefined);
    } catch (error) {
      // Other failures also cause the element's `error` event, or mean that another source replaced this one.
      if (error instanceof Error && error.name === 'NotAllowedError') onProblem('pressListen');
    }
  }

  audio.addEventListener('ended', () => {
    isWanted = false;
  });
  audio.addEventListener('error', () => {
    // The stream may break even though the file is fine, because the browser may stop the worker.
    if (source === 'arrived') return useFile(position());
    // Firefox leaves it playing.
    audio.pause();
    if (source === 'arriving') onProblem('afterArrival');
    // What nobody has asked for need not play.
    else if (isWanted) onProblem('notPlayable');
  });
  audio.addEventListener('waiting', () => {
    clearTimeout(stall);
    stall = setTimeout(() => onProblem('stalled'), STALL_MS);
  });
  for (const event of ['playing', 'pause', 'emptied', 'error', 'ended']) {
    audio.addEventListener(event, () => clearTimeout(stall));
  }
  audio.addEventListener('playing', () => onProblem(undefined));

  return {
    get seconds() {
      return Number.isFinite(audio.duration) ? begins + audio.duration : (track?.seconds ?? 0);
    },
    get position() {
      return position();
    },
    get isListening() {
      return !audio.paused || (source === 'arriving' && isWanted);
    },
    open(next) {
      begin(next, 'file', false);
      useFile(0);
    },
    openArriving(next, from) {
      begin(next, 'arriving', true);
      listen = from;
      if (useStream(0)) return;
      audio.load();
      onProblem('afterArrival');
    },
    complete() {
      become('arrived');
      if (audio.error || !audio.hasAttribute('src')) useFile(position());
    },
    play() {
      isWanted = true;
      const isSpent = source === 'arrived' ? audio.ended || audio.error : source === 'file' && audio.error;
      if (isSpent) useFile(audio.ended ? 0 : position());
      else void start();
    },
    pause() {
      isWanted = false;
      audio.pause();
    },
    seek(seconds) {
      if (source === 'arrived') useFile(seconds);
      else if (source === 'file') audio.currentTime = seconds;
      else if (!useStream(seconds)) onProblem('notYet');
    },
    close() {
      begin(undefined, 'file', false);
      audio.load();
    },
  };
}
