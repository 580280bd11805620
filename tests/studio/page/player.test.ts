/** The player, with a browser's `audio` element as far as happy-dom has it. */

import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { createPlayer } from '../../../src/demo/studio/player.ts';
import { openPage } from './open-page.ts';

const TRACK = {
  ...{ id: '7', title: 'Rain', author: 'Ada', cover: '/cover', seconds: 30, url: '/content' },
  crossOrigin: 'anonymous',
} as const;

function openPlayer() {
  const { window, document, text } = openPage();
  const root = part(document, 'player');
  const nothing = () => {};
  const player = createPlayer(root, {
    text,
    waveform: { draw: nothing, moveTo: nothing },
    ...{ onChange: nothing, onPosition: nothing, onStep: nothing, onEnd: nothing },
  });
  return {
    player,
    audio: part<HTMLAudioElement>(root, 'audio'),
    slider: part<HTMLInputElement>(root, 'position'),
    says: () => [part(part(root, 'toggle'), 'label'), part(root, 'message')].map((each) => each.textContent),
    event: (name: string) => new window.Event(name),
  };
}

it.each(['pointerup', 'pointercancel', 'blur'])(
  'the slider follows the sound again after %s, also when it was dragged out and back',
  (end) => {
    const { player, audio, slider, event } = openPlayer();
    player.open(TRACK);
    slider.value = '9';
    slider.dispatchEvent(event('input'));
    const playTo = (seconds: number) => {
      audio.currentTime = seconds;
      audio.dispatchEvent(event('timeupdate'));
      return slider.value;
    };
    expect(playTo(1)).toBe('9');
    slider.dispatchEvent(event(end));
    expect(playTo(2)).toBe('2');
  },
);

it.each([
  ['a file', 'notPlayable', false],
  ['a stream', 'afterArrival', true],
] as const)(
  'the button offers to listen after %s has failed, although no event says so',
  (_, problem, isArriving) => {
    const { player, audio, says, event } = openPlayer();
    if (isArriving) player.openArriving(TRACK, () => ({ url: '/live/7', from: 0 }));
    else player.open(TRACK);
    player.play();
    // A browser says it later, when the track is open.
    audio.dispatchEvent(event('play'));
    expect(says()).toEqual([english.pause, '']);
    audio.dispatchEvent(event('error'));
    expect(says()).toEqual([english.listen, english[problem]]);
    // The stream plays on as the file, when that is there.
    expect(player.isListening).toBe(isArriving);
  },
);
