import { describe, expect, it, mock, spyOn } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import type { Peaks } from '../../../src/demo/studio/peaks.ts';
import type { Track } from '../../../src/demo/studio/playback.ts';
import { createPlayer } from '../../../src/demo/studio/player.ts';
import { fire, openPart, viewOf } from './page.ts';

function track(id: string, seconds: number): Track {
  return { id, title: id, seconds, url: `https://gateway.test/${id}`, crossOrigin: 'use-credentials' };
}

/** The player with Rain, a track of half a minute, in it. Nothing sounds: the test says how far it has played. */
function openPlayer() {
  const { document, root, text, shown } = openPart('player');
  const audio = part<HTMLAudioElement>(root, 'audio');
  const position = part<HTMLInputElement>(root, 'position');
  const waveform = { draw: mock((_peaks: Peaks | undefined) => {}), moveTo: mock((_share: number) => {}) };
  const player = createPlayer(root, { text, waveform, onChange() {}, onStep() {} });
  player.open(track('Rain', 30));
  return {
    ...{ document, audio, position, waveform, player, shown },
    clock: () => shown('clock'),
    reach(seconds: number) {
      audio.currentTime = seconds;
      fire(audio, 'timeupdate');
    },
    learnDuration(duration: number) {
      Object.defineProperty(audio, 'duration', { configurable: true, value: duration });
      fire(audio, 'durationchange');
    },
    slide(seconds: number, type: 'input' | 'change') {
      position.value = String(seconds);
      fire(position, type);
    },
  };
}

describe('the time of a track in the player', () => {
  it('is shown by clock, slider and waveform, and measured by the file once that is known', () => {
    const { reach, learnDuration, clock, position, waveform } = openPlayer();
    reach(12);
    expect([clock(), position.value]).toEqual(['0:12 / 0:30', '12']);
    expect(position.getAttribute('aria-valuetext')).toBe('0:12 / 0:30');
    expect(waveform.moveTo).toHaveBeenLastCalledWith(12 / 30);
    learnDuration(25);
    expect([clock(), position.max]).toEqual(['0:12 / 0:25', '25']);
    learnDuration(Number.POSITIVE_INFINITY);
    reach(31);
    expect(position.max).toBe('30');
    expect(waveform.moveTo).toHaveBeenLastCalledWith(1);
  });

  it('is the whole at the end, even if the sound ends a moment before', () => {
    const { audio, reach, clock } = openPlayer();
    Object.defineProperty(audio, 'ended', { configurable: true, value: true });
    reach(29.9);
    expect(clock()).toBe('0:30 / 0:30');
  });

  it('follows the slider while it is dragged, and the sound after that', () => {
    const { audio, reach, slide, clock, position } = openPlayer();
    reach(2);
    slide(20, 'input');
    expect([clock(), audio.currentTime]).toEqual(['0:20 / 0:30', 2]);
    reach(3);
    expect([clock(), position.value]).toEqual(['0:20 / 0:30', '20']);
    slide(21, 'change');
    expect([clock(), audio.currentTime]).toEqual(['0:21 / 0:30', 21]);
    reach(22);
    expect(clock()).toBe('0:22 / 0:30');
  });

  it('moves the waveform once a frame while the track plays', () => {
    const { document, audio, waveform } = openPlayer();
    const view = viewOf(document);
    const frames = new Map<number, FrameRequestCallback>();
    let last = 0;
    spyOn(view, 'requestAnimationFrame').mockImplementation((callback) => {
      frames.set(++last, callback);
      return last;
    });
    spyOn(view, 'cancelAnimationFrame').mockImplementation((id) => void frames.delete(id));
    const become = (paused: boolean) => {
      Object.defineProperty(audio, 'paused', { configurable: true, value: paused });
      fire(audio, paused ? 'pause' : 'play');
    };
    const nextFrame = () => {
      const callbacks = [...frames.values()];
      frames.clear();
      for (const callback of callbacks) callback(0);
    };
    for (const paused of [false, true, false]) become(paused);
    fire(audio, 'play');
    audio.currentTime = 15;
    waveform.moveTo.mockClear();
    nextFrame();
    nextFrame();
    expect(waveform.moveTo.mock.calls).toEqual([[0.5], [0.5]]);
    become(true);
    nextFrame();
    expect([waveform.moveTo.mock.calls.length, frames.size]).toEqual([2, 0]);
  });
});

describe('the message of the player', () => {
  it('says that the track waits for the connection, until it does not, or another track is open', () => {
    const { audio, player, shown } = openPlayer();
    player.showRecovery('Rain', true);
    expect(shown('message')).toBe(english.reconnecting);
    fire(audio, 'playing');
    expect(shown('message')).toBe(english.reconnecting);
    player.showRecovery('Snow', false);
    expect(shown('message')).toBe(english.reconnecting);
    player.showRecovery('Rain', false);
    expect(shown('message')).toBe('');
    player.showRecovery('Rain', true);
    player.open(track('Snow', 90));
    expect(shown('message')).toBe('');
  });

  it('says what is worse than a lost connection', () => {
    const { player, shown } = openPlayer();
    player.openArriving(track('Snow', 90), () => undefined);
    player.showRecovery('Snow', true);
    expect(shown('message')).toBe(english.afterArrival);
  });
});

describe('the waveform of the player', () => {
  it('is empty for a new track, and is not drawn with the late outline of another one', () => {
    const { player, reach, waveform } = openPlayer();
    player.drawPeaks('Rain', [1]);
    player.open(track('Snow', 90));
    expect(waveform.draw).toHaveBeenLastCalledWith(undefined);
    reach(45);
    waveform.draw.mockClear();
    player.drawPeaks('Rain', [1]);
    expect(waveform.draw).not.toHaveBeenCalled();
    player.drawPeaks('Snow', [0.5, 1]);
    expect(waveform.draw.mock.calls).toEqual([[[0.5, 1]]]);
    expect(waveform.moveTo).toHaveBeenLastCalledWith(0.5);
  });
});
