/** One long track through everything that may happen to a listener: the sound goes on, in every engine. */

import { expect } from 'bun:test';
import type { DemoWorld } from '../../support/demo-world.ts';

/** So long that no browser and no kernel keeps all of it: 29 MB, 110 slices. */
export const LONG_SECONDS = 600;
/** For an engine that has to play all of it. */
export const SHORTER_SECONDS = 240;
/** Plays faster than it sounds, so that a test does not take ten minutes. */
const RATE = 4;
/** Longer than the gateway leaves a connection on which nothing moves. */
const PAUSE_MS = 90_000;

/** Runs functions in the page of somebody who is signed in. */
export interface Listener {
  call<Args extends readonly unknown[], Value>(
    run: (...args: Args) => Value,
    ...args: Args
  ): Promise<Awaited<Value>>;
}

interface Listening {
  readonly audio: HTMLAudioElement;
  /** The greatest jump of the position between two looks, in seconds. */
  jump: number;
}
declare const listening: Listening;

/** @param canSeek whether the engine's player goes on after a seek in a file without Content-Length */
export async function listenThroughEverything(
  listener: Listener,
  world: Pick<DemoWorld, 'gatewayUrl' | 'upstream' | 'gateway'>,
  canSeek: boolean,
): Promise<void> {
  const seconds = canSeek ? LONG_SECONDS : SHORTER_SECONDS;
  await listener.call(begin, world.gatewayUrl, RATE);
  await playsOn(listener, 10);
  if (canSeek) {
    for (const position of [300, 60]) {
      await listener.call(seek, position);
      await playsOn(listener, 10);
    }
  }
  world.upstream.expireAccessTokens();
  await playsOn(listener, 100);
  await world.gateway.restart();
  await playsOn(listener, 40);
  await listener.call(() => listening.audio.pause());
  await Bun.sleep(PAUSE_MS);
  await listener.call(() => listening.audio.play());
  await playsOn(listener, 40);
  if (canSeek) await listener.call(seek, seconds - 20);
  await reaches(listener, seconds - 1);
  const { jump, error } = await listener.call(() => {
    const { audio, jump } = listening;
    return { jump, error: audio.error?.message ?? null };
  });
  expect(error).toBeNull();
  // What is skipped would be a gap in the sound; looks are at most a second apart.
  expect(jump).toBeLessThan(2 * RATE);
  const session = await listener.call(
    (url) => fetch(`${url}/api/auth/session`, { credentials: 'include' }).then((response) => response.text()),
    world.gatewayUrl,
  );
  expect(session).toContain('Ada');
}

/** Runs in the page. */
async function begin(gatewayUrl: string, rate: number): Promise<void> {
  const address = `${gatewayUrl}/api/upstream/v1/music/creations`;
  const list = await fetch(address, { credentials: 'include' }).then((response) => response.json());
  for (const other of document.querySelectorAll('audio')) other.pause();
  const audio = document.createElement('audio');
  audio.crossOrigin = 'use-credentials';
  audio.src = `${address}/${list.data[0].id}/content`;
  document.body.append(audio);
  const state = { audio, jump: 0 };
  Object.assign(window, { listening: state });
  let last = 0;
  audio.addEventListener('seeking', () => {
    last = audio.currentTime;
  });
  audio.addEventListener('timeupdate', () => {
    if (!audio.seeking) state.jump = Math.max(state.jump, audio.currentTime - last);
    last = audio.currentTime;
  });
  audio.playbackRate = rate;
  await audio.play();
}

/** Runs in the page. */
function seek(seconds: number): void {
  listening.audio.currentTime = seconds;
}

async function playsOn(listener: Listener, seconds: number): Promise<void> {
  const from = await listener.call(() => listening.audio.currentTime);
  await reaches(listener, from + seconds);
}

/** Waits much longer than the player needs. */
async function reaches(listener: Listener, seconds: number): Promise<void> {
  const last = performance.now() + 120_000;
  let seen: unknown;
  while (performance.now() < last) {
    const state = await listener.call(() => {
      const { currentTime, ended, paused, error, readyState, networkState } = listening.audio;
      return { currentTime, ended, paused, error: error?.message, readyState, networkState };
    });
    if (state.currentTime >= seconds || state.ended) return;
    seen = state;
    await Bun.sleep(200);
  }
  throw new Error(`did not reach second ${seconds}: ${JSON.stringify(seen)}`);
}
