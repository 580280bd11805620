import { describe, expect, it, mock } from 'bun:test';
import { english } from '../../../src/demo/studio/english.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import type { Track } from '../../../src/demo/studio/playback.ts';
import { createPlayer } from '../../../src/demo/studio/player.ts';
import { settle } from '../../client/fake-time.ts';
import { fire, openPart } from './page.ts';

const track = (id: string, seconds: number) =>
  ({ id, title: id, seconds, url: `https://gateway.test/${id}`, crossOrigin: 'use-credentials' }) as const;

const STREAM = { url: 'https://studio.test/live/1', from: 0 };

/** The player with Rain, a track of half a minute, in it. Nothing sounds: the test says how far it has played. */
function openPlayer() {
  const { root, text, shown } = openPart('player');
  const audio = part<HTMLAudioElement>(root, 'audio');
  const position = part<HTMLInputElement>(root, 'position');
  const waveform = { draw() {}, moveTo() {} };
  const onEnd = mock((_track: Track) => {});
  const player = createPlayer(root, { text, waveform, onChange() {}, onStep() {}, onEnd });
  player.open(track('Rain', 30));
  return {
    ...{ audio, player, onEnd },
    message: () => shown('message'),
    times: () => [shown('clock'), position.value, audio.currentTime],
    reach(seconds: number, file: object = {}) {
      Object.defineProperties(audio, Object.getOwnPropertyDescriptors(file));
      audio.currentTime = seconds;
      fire(audio, 'timeupdate');
    },
    slide(seconds: number, type: 'input' | 'change') {
      position.value = String(seconds);
      fire(position, type);
    },
  };
}

describe('the player', () => {
  it('shows the time, as the slider or the sound says it, and measures it by the file once that is known', () => {
    const { reach, slide, times } = openPlayer();
    reach(12);
    expect(times()).toEqual(['0:12 / 0:30', '12', 12]);
    slide(20, 'input');
    expect(times()).toEqual(['0:20 / 0:30', '20', 12]);
    reach(13);
    expect(times()).toEqual(['0:20 / 0:30', '20', 13]);
    slide(21, 'change');
    expect(times()).toEqual(['0:21 / 0:30', '21', 21]);
    reach(22, { duration: 25 });
    expect(times()).toEqual(['0:22 / 0:25', '22', 22]);
    // The sound may end a moment before its time, and the file may be a moment shorter.
    reach(24.9, { ended: true });
    expect(times()).toEqual(['0:25 / 0:25', '25', 24.9]);
  });

  it('moves in an arriving track by a stream from there, and by its file when it is complete', () => {
    const { audio, player, reach, slide, times, onEnd } = openPlayer();
    // Half a minute of it is there.
    const listen = (seconds: number) => {
      const from = Math.min(seconds, 30);
      return { url: `https://studio.test/live/${from}`, from };
    };
    player.openArriving(track('Snow', 90), listen);
    reach(2, { duration: Number.POSITIVE_INFINITY });
    slide(40, 'input');
    expect(times()[0]).toBe('0:40 / 1:30');
    slide(40, 'change');
    reach(0, { duration: 60 });
    expect([audio.src, times()[0]]).toEqual(['https://studio.test/live/30', '0:30 / 1:30']);
    reach(4);
    expect(times()).toEqual(['0:34 / 1:30', '34', 4]);
    slide(24, 'change');
    expect([audio.src, audio.paused]).toEqual(['https://studio.test/live/24', false]);
    player.pause();
    slide(10, 'change');
    expect([audio.src, audio.paused]).toEqual(['https://studio.test/live/10', true]);
    player.play();
    player.complete('Snow');
    expect([audio.src, audio.paused]).toEqual(['https://studio.test/live/10', false]);
    slide(20, 'change');
    expect([audio.src, times()[0]]).toEqual(['https://gateway.test/Snow', '0:20 / 1:00']);
    fire(audio, 'ended');
    expect(onEnd.mock.calls).toMatchObject([[{ id: 'Snow' }]]);
  });

  it('plays the file in place of a stream that is broken or spent, and only then', async () => {
    const { audio, player, reach, message } = openPlayer();
    const playing = () => [audio.src, audio.currentTime, message()];
    player.openArriving(track('Snow', 90), () => STREAM);
    reach(12, { error: {} });
    fire(audio, 'error');
    expect(playing()).toEqual([STREAM.url, 12, english.afterArrival]);
    player.complete('Snow');
    await settle();
    expect(playing()).toEqual(['https://gateway.test/Snow', 12, '']);

    reach(13, { error: null });
    player.openArriving(track('Hail', 90), () => STREAM);
    player.complete('Hail');
    expect(playing()).toEqual([STREAM.url, 13, '']);
    fire(audio, 'error');
    expect(playing()).toEqual(['https://gateway.test/Hail', 13, '']);

    player.openArriving(track('Fog', 90), () => STREAM);
    player.complete('Fog');
    reach(90, { ended: true });
    fire(audio, 'ended');
    player.play();
    expect(playing()).toEqual(['https://gateway.test/Fog', 0, '']);
  });

  it('says that the browser wants a press, and that a track does not play to a person who wants it', async () => {
    const { audio, player, message } = openPlayer();
    const said = async () => {
      await settle();
      return message();
    };
    fire(audio, 'error');
    expect(await said()).toBe('');
    audio.play = () => Promise.reject(new DOMException('', 'NotAllowedError'));
    player.play();
    expect(await said()).toBe(english.pressListen);
    Reflect.deleteProperty(audio, 'play');
    player.play();
    expect(await said()).toBe('');
    fire(audio, 'error');
    expect(await said()).toBe(english.notPlayable);
  });

  it('says that it cannot be moved in a track of which nothing can be cut, or that the rest waits for the connection', () => {
    const { audio, player, slide, message } = openPlayer();
    const onlyBeginning = (seconds: number) => (seconds === 0 ? STREAM : undefined);
    player.openArriving(track('Snow', 90), onlyBeginning);
    slide(20, 'change');
    expect([audio.src, message()]).toEqual([STREAM.url, english.notYet]);
    player.complete('Rain');
    expect(message()).toBe(english.notYet);
    player.complete('Snow');
    expect(message()).toBe('');

    player.showRecovery('Snow', true);
    player.showRecovery('Rain', false);
    expect(message()).toBe(english.reconnecting);
    player.showRecovery('Snow', false);
    expect(message()).toBe('');
    player.showRecovery('Snow', true);
    player.open(track('Fog', 90));
    expect(message()).toBe('');
  });
});
