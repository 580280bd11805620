import { expect, it } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { createPlayer } from '../../../src/demo/studio/player.ts';
import { settle } from '../../client/fake-time.ts';
import { fire, openPart } from './page.ts';

const STREAM = { url: 'https://studio.test/live/1', from: 0 };

const track = (id: string) =>
  ({
    id,
    title: id,
    seconds: 90,
    url: `https://gateway.test/${id}`,
    crossOrigin: 'use-credentials',
  }) as const;

// Nothing sounds: the test says how far the element has played.
it('the player plays the file in place of a stream that is broken or spent, and only then', async () => {
  const { root, text, shown } = openPart('player');
  const audio = part<HTMLAudioElement>(root, 'audio');
  const waveform = { draw() {}, moveTo() {} };
  const player = createPlayer(root, { text, waveform, onChange() {}, onStep() {}, onEnd() {} });
  const reach = (seconds: number, file: object) => {
    Object.defineProperties(audio, Object.getOwnPropertyDescriptors(file));
    audio.currentTime = seconds;
  };
  const playing = () => [audio.src, audio.currentTime, shown('message')];
  player.openArriving(track('Snow'), () => STREAM);
  reach(12, { error: {} });
  fire(audio, 'error');
  expect(playing()).toEqual([STREAM.url, 12, english.afterArrival]);
  player.complete('Snow');
  await settle();
  expect(playing()).toEqual(['https://gateway.test/Snow', 12, '']);
  fire(audio, 'error');
  expect(playing()[2]).toBe(english.notPlayable);

  reach(13, { error: null });
  player.openArriving(track('Hail'), () => STREAM);
  player.complete('Hail');
  expect(playing()).toEqual([STREAM.url, 13, '']);
  fire(audio, 'error');
  expect(playing()).toEqual(['https://gateway.test/Hail', 13, '']);

  player.openArriving(track('Fog'), () => STREAM);
  player.complete('Fog');
  reach(90, { ended: true });
  fire(audio, 'ended');
  player.play();
  expect(playing()).toEqual(['https://gateway.test/Fog', 0, '']);
});
