import { expect, it } from 'bun:test';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { cutAudio } from '../../../src/demo/studio/audio-cut.ts';
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

/** Nothing sounds: the test says how far the element has played. */
function openPlayer() {
  const { root, text, shown } = openPart('player');
  const audio = part<HTMLAudioElement>(root, 'audio');
  const position = part<HTMLInputElement>(root, 'position');
  const waveform = { draw() {}, moveTo() {} };
  return {
    ...{ audio, shown },
    player: createPlayer(root, { text, waveform, onChange() {}, onStep() {}, onEnd() {} }),
    reach(seconds: number, file: object = {}) {
      Object.defineProperties(audio, Object.getOwnPropertyDescriptors(file));
      audio.currentTime = seconds;
      fire(audio, 'timeupdate');
    },
    slide(seconds: number) {
      position.value = String(seconds);
      fire(position, 'change');
    },
  };
}

it('the player moves in an arriving track by a stream from there, and by its file when it is complete', () => {
  const { audio, player, reach, slide, shown } = openPlayer();
  // Half a minute of it is there.
  const listen = (seconds: number) => {
    const from = Math.min(seconds, 30);
    return { url: `https://studio.test/live/${from}`, from };
  };
  player.openArriving(track('Snow'), listen);
  slide(40);
  reach(4, { duration: 60 });
  expect([audio.src, shown('clock')]).toEqual(['https://studio.test/live/30', '0:34 / 1:30']);
  player.pause();
  slide(10);
  expect([audio.src, audio.paused]).toEqual(['https://studio.test/live/10', true]);
  player.play();
  player.complete('Snow');
  expect([audio.src, audio.paused]).toEqual(['https://studio.test/live/10', false]);
  slide(20);
  expect([audio.src, shown('clock')]).toEqual(['https://gateway.test/Snow', '0:20 / 1:00']);
});

it('the player plays the file in place of a stream that is broken or spent, and only then', async () => {
  const { audio, player, reach, shown } = openPlayer();
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

it('an arriving WAV goes on from a later time with the samples from there, and announces those that are left', () => {
  const rate = 48_000;
  const order = { model: 'm', prompt: 'Rain', lengthMs: 4_000 };
  const wav = renderWav(composeTrack(order), 0, wavSize(order.lengthMs));
  const end = 44 + 3 * rate;
  // The header does not end with a piece, and the last second is not there yet.
  const pieces = [wav.subarray(0, 30), wav.subarray(30, 100_001), wav.subarray(100_001, end)];
  for (const [seconds, from] of [
    [1.5, 1.5],
    [9, 3],
  ] as const) {
    const cut = cutAudio({ pieces, contentType: 'audio/wav', bytesPerSecond: undefined }, seconds);
    const file = Buffer.concat(cut?.pieces ?? []);
    expect([cut?.from, file.readUInt32LE(40)]).toEqual([from, (4 - from) * rate]);
    expect(file.subarray(44).equals(wav.subarray(44 + from * rate, end))).toBe(true);
  }
});
