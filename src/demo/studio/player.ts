/** The player's controls: its button, its waveform with a slider over it, and its clock. */

import { part } from './parts.ts';
import type { Peaks } from './peaks.ts';
import { createPlayback, type Listen, type Playback, type Track } from './playback.ts';
import { createPlayerMessage } from './player-message.ts';
import type { Text } from './text.ts';
import type { Waveform } from './waveform.ts';

export interface Player extends Pick<Playback, 'isListening' | 'position' | 'play' | 'pause' | 'close'> {
  /** The id of the open track, if there is one. */
  readonly openId: string | undefined;
  has(trackId: string): boolean;
  /** Makes a track ready to play. Does nothing if it is already open. */
  open(track: Track): void;
  /** The same for one that is still being made. */
  openArriving(track: Track, listen: Listen): void;
  /** This and the following functions do nothing if another track is open. Shows what is known of the track now. */
  describe(track: Track): void;
  complete(trackId: string): void;
  /** Says whether the rest of an arriving track waits for the connection to come back. */
  showRecovery(trackId: string, isRecovering: boolean): void;
  /** Closes an arriving track that will not be complete. */
  breakOff(trackId: string): void;
  drawPeaks(trackId: string, peaks: Peaks | undefined): void;
  /** Plays or pauses the open track. */
  toggle(): void;
  /** Moves to a time of the open track, in seconds; while it arrives, as far as it is there. */
  seek(seconds: number): void;
  /** Moves so many seconds on, or back if negative. */
  skip(seconds: number): void;
  /** Goes to the next track, or back to the previous one: first to the beginning of this one. */
  step(by: Step): void;
}

/** To the previous or to the next track. */
export type Step = -1 | 1;

export interface PlayerOptions {
  readonly text: Text;
  readonly waveform: Waveform;
  /** Called with the track that is now open, if there is one, and whether it plays. */
  readonly onChange: (track: Track | undefined, isPlaying: boolean) => void;
  /** Called with the time that is heard, and that of the whole track. */
  readonly onPosition: (seconds: number, of: number) => void;
  /** Called when another track should be opened. */
  readonly onStep: (from: Track, by: Step) => void;
  /** Called when the open track has been played to its end. */
  readonly onEnd: (track: Track) => void;
}

/** Later than this, a step back leads to the beginning of the same track. */
const BEGINNING_SECONDS = 3;
const ARROW_SECONDS = 5;

export function createPlayer(root: HTMLElement, options: PlayerOptions): Player {
  const { text, waveform, onChange, onPosition, onStep, onEnd } = options;
  const audio = part<HTMLAudioElement>(root, 'audio');
  const position = part<HTMLInputElement>(root, 'position');
  const toggle = part(root, 'toggle');
  const clock = part(root, 'clock');
  const message = createPlayerMessage(part(root, 'message'), { text });
  const playback = createPlayback(audio, {
    onProblem: message.showProblem,
    onArriving(isArriving) {
      part(root, 'live').hidden = !isArriving;
    },
  });
  let track: Track | undefined;
  let isDragging = false;
  let frame = 0;

  function showTrack(next: Track | undefined): void {
    track = next;
    isDragging = false;
    message.showRecovery(false);
    root.dataset['state'] = track ? 'paused' : 'empty';
    part(root, 'title').textContent = track?.title ?? '';
    part<HTMLImageElement>(root, 'cover').src = track?.cover ?? '';
    waveform.draw(undefined);
    showTime(0);
    onChange(track, false);
  }

  function showTime(at: number): void {
    const of = playback.seconds;
    if (!isDragging) {
      position.max = String(of);
      position.value = String(at);
    }
    // A file of 30 seconds may last a few milliseconds less.
    text.write(clock, 'clock', { at: audio.ended ? Math.round(of) : at, of: Math.round(of) });
    position.setAttribute('aria-valuetext', clock.textContent);
    showHeard(at);
    onPosition(at, of);
  }

  /** The sound may end a moment before the time that its file announces. */
  function timeReached(): number {
    return audio.ended ? playback.seconds : playback.position;
  }

  function showHeard(at: number): void {
    const of = playback.seconds;
    waveform.moveTo(of > 0 ? Math.min(at / of, 1) : 0);
  }

  function showPlaying(): void {
    if (!track) return;
    root.dataset['state'] = audio.paused ? 'paused' : 'playing';
    text.write(part(toggle, 'label'), audio.paused ? 'listen' : 'pause');
    onChange(track, !audio.paused);
    followSmoothly();
  }

  /** Moves the waveform in each frame, because `timeupdate` fires too rarely for a smooth movement. */
  function followSmoothly(): void {
    const { defaultView: window } = root.ownerDocument;
    window?.cancelAnimationFrame(frame);
    if (audio.paused) return;
    if (!isDragging) showHeard(playback.position);
    frame = window?.requestAnimationFrame(followSmoothly) ?? 0;
  }

  function togglePlaying(): void {
    if (!track) return;
    if (audio.paused) playback.play();
    else playback.pause();
  }

  function seek(seconds: number): void {
    if (!track) return;
    playback.seek(Math.min(Math.max(seconds, 0), playback.seconds));
    showTime(playback.position);
  }

  function step(by: Step): void {
    if (!track) return;
    if (by < 0 && playback.position > BEGINNING_SECONDS) seek(0);
    else onStep(track, by);
  }

  toggle.addEventListener('click', togglePlaying);
  part(root, 'previous').addEventListener('click', () => step(-1));
  part(root, 'next').addEventListener('click', () => step(1));
  position.addEventListener('keydown', (event) => {
    const seconds = { ArrowLeft: -ARROW_SECONDS, ArrowRight: ARROW_SECONDS }[event.key];
    if (seconds === undefined) return;
    event.preventDefault();
    seek(playback.position + seconds);
  });
  position.addEventListener('input', () => {
    isDragging = true;
    showTime(position.valueAsNumber);
  });
  position.addEventListener('change', () => {
    isDragging = false;
    seek(position.valueAsNumber);
  });
  // Without `change` when the value is the same as before.
  for (const event of ['pointerup', 'pointercancel', 'blur']) {
    position.addEventListener(event, () => {
      isDragging = false;
    });
  }
  audio.addEventListener('ended', () => track && onEnd(track));
  for (const event of ['play', 'pause', 'ended', 'emptied']) audio.addEventListener(event, showPlaying);
  for (const event of ['timeupdate', 'durationchange', 'ended']) {
    audio.addEventListener(event, () => !isDragging && showTime(timeReached()));
  }

  function close(): void {
    playback.close();
    showTrack(undefined);
  }

  return {
    get isListening() {
      return playback.isListening;
    },
    get position() {
      return playback.position;
    },
    get openId() {
      return track?.id;
    },
    has: (id) => id === track?.id,
    open(next) {
      if (next.id === track?.id) return;
      playback.open(next);
      showTrack(next);
    },
    describe(next) {
      if (next.id !== track?.id || (next.title === track.title && next.author === track.author)) return;
      track = next;
      part(root, 'title').textContent = next.title;
      onChange(track, !audio.paused);
    },
    openArriving(next, listen) {
      if (next.id === track?.id) return;
      playback.openArriving(next, listen);
      showTrack(next);
    },
    complete(id) {
      if (id !== track?.id) return;
      for (const over of ['notYet', 'afterArrival'] as const) message.endProblem(over);
      playback.complete();
    },
    showRecovery(id, isRecovering) {
      if (id === track?.id) message.showRecovery(isRecovering);
    },
    breakOff(id) {
      if (id === track?.id) close();
    },
    play: playback.play,
    pause: playback.pause,
    toggle: togglePlaying,
    seek,
    skip: (seconds) => seek(playback.position + seconds),
    step,
    drawPeaks(id, peaks) {
      if (id !== track?.id) return;
      waveform.draw(peaks);
      showTime(playback.position);
    },
    close,
  };
}
