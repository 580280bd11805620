/** The player of the page, with an audio element that does what a browser's does, as far as a player can tell. */

import { mock } from 'bun:test';
import { part } from '../../../src/demo/studio/parts.ts';
import type { Peaks } from '../../../src/demo/studio/peaks.ts';
import type { Track } from '../../../src/demo/studio/playback.ts';
import { createPlayer } from '../../../src/demo/studio/player.ts';
import { button, fire, openPage, settle, shownText } from './page.ts';

export const RAIN = track('c1', 'Rain', 30);
export const SNOW = track('c2', 'Snow', 90);

function track(id: string, title: string, seconds: number): Track {
  const url = `https://gateway.test/${id}/content`;
  return { id, title, seconds, url, crossOrigin: 'use-credentials' };
}

/** What an element says of itself. */
interface AudioState {
  paused: boolean;
  ended: boolean;
  duration: number;
  error: { readonly code: number } | null;
}

/**
 * happy-dom's element plays on when its source is changed, and tells everything at once. A real one stops, forgets
 * its error and its place, and tells later.
 *
 * @see HTML, media element load algorithm
 */
function makeReal(audio: HTMLAudioElement) {
  const state: AudioState = { paused: true, ended: false, duration: Number.NaN, error: null };
  const sources: string[] = [];
  const tell = (type: string) => queueMicrotask(() => fire(audio, type));
  for (const name of ['paused', 'ended', 'duration', 'error'] as const) {
    Object.defineProperty(audio, name, { get: () => state[name] });
  }
  Object.defineProperty(audio, 'src', {
    get: () => audio.getAttribute('src') ?? '',
    set(source: string) {
      sources.push(source);
      audio.setAttribute('src', source);
      audio.load();
    },
  });
  audio.load = () => {
    Object.assign(state, { paused: true, ended: false, duration: Number.NaN, error: null });
    audio.currentTime = 0;
    tell('emptied');
  };
  audio.play = async () => {
    state.paused = false;
    tell('play');
  };
  audio.pause = () => {
    state.paused = true;
    tell('pause');
  };
  return { state, sources };
}

export function openDeck() {
  const { document, text } = openPage();
  const root = part(document, 'player');
  const audio = part<HTMLAudioElement>(root, 'audio');
  const { state, sources } = makeReal(audio);
  const position = part<HTMLInputElement>(root, 'position');
  const waveform = {
    draw: mock((_peaks: Peaks | undefined) => {}),
    moveTo: mock((_share: number) => {}),
  };
  const onTrack = mock((_track: Track | undefined) => {});
  const player = createPlayer(root, { text, waveform, onTrack });
  const happens = (type: string, change: Partial<AudioState> = {}) => {
    Object.assign(state, change);
    fire(audio, type);
    return settle();
  };
  const move = (seconds: number, type: 'input' | 'change') => {
    position.value = String(seconds);
    fire(position, type);
    return settle();
  };
  return {
    ...{ document, root, audio, position, waveform, onTrack, player },
    /** The sources that the element was given since the last look. */
    takeSources: () => sources.splice(0),
    message: () => part(root, 'message').textContent,
    clock: () => part(root, 'clock').textContent,
    isLive: () => shownText(root).includes('Arriving'),
    press(name: 'Listen' | 'Pause') {
      button(root, name).click();
      return settle();
    },
    /** It has played until there. */
    reach(seconds: number) {
      audio.currentTime = seconds;
      return happens('timeupdate');
    },
    learnDuration: (duration: number) => happens('durationchange', { duration }),
    end: () => happens('ended', { ended: true, paused: true }),
    /** As in Chromium, where it is paused by itself before it tells of the error. */
    async fail() {
      await happens('error', { error: { code: 2 }, paused: true });
      await happens('pause');
    },
    drag: (seconds: number) => move(seconds, 'input'),
    drop: (seconds: number) => move(seconds, 'change'),
  };
}
