/** One long file through everything that may happen to a listener: the sound goes on, in every engine. */

import { expect } from 'bun:test';
import type { Page } from 'playwright-core';
import type { DemoWorld } from '../demo-world.ts';

/** So long that neither browser nor kernel keeps all of it, and how much is played after the token has expired. */
const SOUGHT = { seconds: 300, rate: 16, more: 60 };
/** Where all of it has to be heard. */
const HEARD = { seconds: 75, rate: 4, more: 20 };
/** The first slice of the file that the upstream refuses. */
const EXPIRED_SLICE = 8;
/** Longer than a browser that goes on needs for it. */
const SILENCE_MS = 15_000;

/** Runs functions in the page of somebody who is signed in. */
export interface Listener {
  call<Args extends readonly unknown[], Value>(
    run: (...args: Args) => Value,
    ...args: Args
  ): Promise<Awaited<Value>>;
}

export function listenerIn(page: Pick<Page, 'evaluate'>): Listener {
  return {
    async call(run, ...args) {
      const expression = `(${run})(...${JSON.stringify(args)})`;
      return JSON.parse(await page.evaluate(`(async () => JSON.stringify(await ${expression}) ?? 'null')()`));
    },
  };
}

declare const listening: {
  readonly audio: HTMLAudioElement;
  /** The greatest jump of the position between two looks, in seconds. */
  readonly jump: number;
};

/** @param canSeek whether the engine's player goes on after a seek in a file without Content-Length */
export async function listenThroughEverything(
  listener: Listener,
  world: DemoWorld,
  canSeek: boolean,
): Promise<void> {
  const { seconds, rate, more } = canSeek ? SOUGHT : HEARD;
  const path = `/v1/music/creations/${await listener.call(makeTrack, world.gatewayUrl, seconds)}/content`;
  const statuses: number[] = [];
  world.gate.replace(`GET ${path}`, async (forward) => {
    // In the middle of a response, which breaks off. WebKit's player may stall for ever then.
    if (canSeek && statuses.length === EXPIRED_SLICE) world.upstream.expireAccessTokens();
    const response = await forward();
    statuses.push(response.status);
    return response;
  });
  await listener.call(begin, `${world.gatewayUrl}/api/upstream${path}`, rate);
  await playsOn(listener, 1);
  // WebKit takes the rate only when it begins again.
  await listener.call(() => listening.audio.pause());
  await listener.call(() => listening.audio.play());
  await playsOn(listener, 5);
  for (const position of canSeek ? [150, 30] : []) {
    await listener.call(seek, position);
    await playsOn(listener, 5);
  }
  world.upstream.expireAccessTokens();
  await playsOn(listener, more);
  await world.gateway.restart();
  await playsOn(listener, 15);
  await listener.call(() => listening.audio.pause());
  // As the gateway does with a connection on which nothing has moved for a minute.
  world.network.break();
  await listener.call(() => listening.audio.play());
  await playsOn(listener, 15);
  if (canSeek) await listener.call(seek, seconds - 10);
  await reaches(listener, seconds - 1);
  const { jump, error } = await listener.call(() => ({
    jump: listening.jump,
    error: listening.audio.error?.message ?? null,
  }));
  expect(error).toBeNull();
  // What is skipped would be a gap in the sound. A busy browser looks once in two seconds.
  expect(jump).toBeLessThan(2 * rate);
  if (canSeek) expect(statuses).toContain(401);
  expect(world.upstream.counts().refusedRefreshes).toBe(0);
}

/** Runs in the page: makes a track that the page does not know of, and returns its id. */
async function makeTrack(gatewayUrl: string, seconds: number): Promise<string | null> {
  const response = await fetch(`${gatewayUrl}/api/music/generate`, {
    method: 'POST',
    credentials: 'include',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox-music-1', prompt: 'Waves', music_length_ms: seconds * 1_000 }),
  });
  await response.arrayBuffer();
  return response.headers.get('x-music-creation-id');
}

/** Runs in the page. */
async function begin(url: string, rate: number): Promise<void> {
  const audio = Object.assign(new Audio(), { crossOrigin: 'use-credentials', src: url });
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

/** Waits as long as the sound goes on. */
async function reaches(listener: Listener, seconds: number): Promise<void> {
  let movedAt = performance.now();
  let last = -1;
  while (performance.now() < movedAt + SILENCE_MS) {
    const at = await listener.call(() => listening.audio.currentTime);
    if (at >= seconds) return;
    if (at !== last) movedAt = performance.now();
    last = at;
    await Bun.sleep(100);
  }
  throw new Error(`is silent at second ${last}, and did not reach second ${seconds}`);
}
