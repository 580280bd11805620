import { describe, expect, it, mock } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import type { Peaks } from '../../../src/demo/studio/peaks.ts';
import type { Track } from '../../../src/demo/studio/playback.ts';
import { createPlayer } from '../../../src/demo/studio/player.ts';
import { fire, openPart } from './page.ts';

function track(id: string, seconds: number): Track {
  return { id, title: id, seconds, url: `https://gateway.test/${id}`, crossOrigin: 'use-credentials' };
}

/** The player with Rain, a track of half a minute, in it. Nothing sounds: the test says how far it has played. */
function openPlayer() {
  const { root, text, shown } = openPart('player');
  const audio = part<HTMLAudioElement>(root, 'audio');
  const position = part<HTMLInputElement>(root, 'position');
  const waveform = { draw: mock((_peaks: Peaks | undefined) => {}), moveTo: mock((_share: number) => {}) };
  const player = createPlayer(root, { text, waveform, onChange() {}, onStep() {} });
  player.open(track('Rain', 30));
  const learn = (name: 'duration' | 'ended', value: unknown) =>
    Object.defineProperty(audio, name, { configurable: true, value });
  return {
    ...{ audio, position, waveform, player, learn },
    clock: () => shown('clock'),
    message: () => shown('message'),
    reach(seconds: number) {
      audio.currentTime = seconds;
      fire(audio, 'timeupdate');
    },
    slide(seconds: number, type: 'input' | 'change') {
      position.value = String(seconds);
      fire(position, type);
    },
  };
}

describe('the time of a track in the player', () => {
  it('is shown by clock, slider and waveform, and measured by the file once that is known', () => {
    const { audio, learn, reach, clock, position, waveform } = openPlayer();
    reach(12);
    expect([clock(), position.value]).toEqual(['0:12 / 0:30', '12']);
    expect(position.getAttribute('aria-valuetext')).toBe('0:12 / 0:30');
    expect(waveform.moveTo).toHaveBeenLastCalledWith(12 / 30);
    learn('duration', 25);
    fire(audio, 'durationchange');
    expect([clock(), position.max]).toEqual(['0:12 / 0:25', '25']);
    learn('duration', Number.POSITIVE_INFINITY);
    reach(31);
    expect(position.max).toBe('30');
    expect(waveform.moveTo).toHaveBeenLastCalledWith(1);
    // The sound may end a moment before its time.
    learn('ended', true);
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
});

describe('the message of the player', () => {
  it('says that the track waits for the connection, until it does not, or another track is open', () => {
    const { audio, player, message } = openPlayer();
    player.showRecovery('Rain', true);
    fire(audio, 'playing');
    player.showRecovery('Snow', false);
    expect(message()).toBe(english.reconnecting);
    player.showRecovery('Rain', false);
    expect(message()).toBe('');
    player.showRecovery('Rain', true);
    player.open(track('Snow', 90));
    expect(message()).toBe('');
    // What is worse than a lost connection.
    player.openArriving(track('Hail', 90), () => undefined);
    player.showRecovery('Hail', true);
    expect(message()).toBe(english.afterArrival);
  });
});

describe('the waveform of the player', () => {
  it('is empty for a new track, and is not drawn with the late outline of another one', () => {
    const { player, reach, waveform } = openPlayer();
    player.drawPeaks('Rain', [1]);
    player.open(track('Snow', 90));
    reach(45);
    player.drawPeaks('Rain', [1]);
    player.drawPeaks('Snow', [0.5, 1]);
    expect(waveform.draw.mock.calls).toEqual([[undefined], [[1]], [undefined], [[0.5, 1]]]);
    expect(waveform.moveTo).toHaveBeenLastCalledWith(0.5);
  });
});
