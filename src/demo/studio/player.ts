/** The player's controls: its button, its waveform with a slider over it, and its clock. */

import { part } from './parts.ts';
import type { Peaks } from './peaks.ts';
import { createPlayback, type Playback, type Track } from './playback.ts';
import type { Text } from './text.ts';
import type { Waveform } from './waveform.ts';

export interface Player extends Pick<Playback, 'openArriving' | 'play' | 'close'> {
  /** Makes a track ready to play. Does nothing if it is already open. */
  open(track: Track): void;
  /** This and the following functions do nothing if another track is open. */
  complete(trackId: string): void;
  /** Closes an arriving track that will not be complete. */
  breakOff(trackId: string): void;
  drawPeaks(trackId: string, peaks: Peaks | undefined): void;
}

export interface PlayerOptions {
  readonly text: Text;
  readonly waveform: Waveform;
  /** Called with the track that is now open, if there is one. */
  readonly onTrack: (track: Track | undefined) => void;
}

export function createPlayer(root: HTMLElement, { text, waveform, onTrack }: PlayerOptions): Player {
  const audio = part<HTMLAudioElement>(root, 'audio');
  const position = part<HTMLInputElement>(root, 'position');
  const toggle = part(root, 'toggle');
  const clock = part(root, 'clock');
  const playback = createPlayback(audio, {
    onProblem: (problem) => text.write(part(root, 'message'), problem),
    onArriving(isArriving) {
      position.disabled = isArriving;
      part(root, 'live').hidden = !isArriving;
    },
  });
  let trackId: string | undefined;
  let isDragging = false;
  let frame = 0;

  function showTrack(track: Track | undefined): void {
    trackId = track?.id;
    isDragging = false;
    root.dataset['state'] = track ? 'paused' : 'empty';
    part(root, 'title').textContent = track?.title ?? '';
    waveform.draw(undefined);
    showTime(0);
    onTrack(track);
  }

  function showTime(at: number): void {
    const of = playback.seconds;
    if (!isDragging) {
      position.max = String(of);
      position.value = String(at);
    }
    text.write(clock, 'clock', { at, of });
    position.setAttribute('aria-valuetext', clock.textContent);
    showHeard(at);
  }

  function showHeard(at: number): void {
    const of = playback.seconds;
    waveform.moveTo(of > 0 ? Math.min(at / of, 1) : 0);
  }

  function showPlaying(): void {
    if (trackId === undefined) return;
    root.dataset['state'] = audio.paused ? 'paused' : 'playing';
    text.write(part(toggle, 'label'), audio.paused ? 'listen' : 'pause');
    followSmoothly();
  }

  /** Moves the waveform in each frame, because `timeupdate` fires too rarely for a smooth movement. */
  function followSmoothly(): void {
    const { defaultView: window } = root.ownerDocument;
    window?.cancelAnimationFrame(frame);
    if (audio.paused) return;
    if (!isDragging) showHeard(audio.currentTime);
    frame = window?.requestAnimationFrame(followSmoothly) ?? 0;
  }

  toggle.addEventListener('click', () => {
    if (audio.paused) playback.play();
    else playback.pause();
  });
  position.addEventListener('input', () => {
    isDragging = true;
    showTime(position.valueAsNumber);
  });
  position.addEventListener('change', () => {
    isDragging = false;
    playback.seek(position.valueAsNumber);
    showTime(position.valueAsNumber);
  });
  for (const event of ['play', 'pause', 'ended', 'emptied']) audio.addEventListener(event, showPlaying);
  for (const event of ['timeupdate', 'durationchange']) {
    audio.addEventListener(event, () => !isDragging && showTime(audio.currentTime));
  }

  function close(): void {
    playback.close();
    showTrack(undefined);
  }

  return {
    open(track) {
      if (track.id === trackId) return;
      playback.open(track);
      showTrack(track);
    },
    openArriving(track, streamUrl) {
      playback.openArriving(track, streamUrl);
      showTrack(track);
    },
    complete(id) {
      if (id === trackId) playback.complete();
    },
    breakOff(id) {
      if (id === trackId) close();
    },
    play: playback.play,
    drawPeaks(id, peaks) {
      if (id !== trackId) return;
      waveform.draw(peaks);
      showTime(audio.currentTime);
    },
    close,
  };
}
