/** One long file through everything that may happen to a listener: the sound goes on, in every engine. */

import { expect } from 'bun:test';
import type { DemoWorld } from '../demo-world.ts';
import type { Person } from './person.ts';

/** So long that neither browser nor kernel keeps all of it, and how much is played after the token has expired. */
const SOUGHT = { seconds: 300, rate: 16, more: 60 };
/** Where all of it has to be heard. */
const HEARD = { seconds: 75, rate: 4, more: 20 };
/** The first slice of the file that the upstream refuses. */
const EXPIRED_SLICE = 8;
/** Longer than a browser that goes on needs for it. */
const SILENCE_MS = 15_000;

declare const listening: {
  readonly audio: HTMLAudioElement;
  /** The greatest jump of the position between two looks, in seconds. */
  readonly jump: number;
};

/** @param canSeek whether the engine's player goes on after a seek in a file without Content-Length */
export async function listenThroughEverything(
  person: Person,
  world: DemoWorld,
  canSeek: boolean,
): Promise<void> {
  const { seconds, rate, more } = canSeek ? SOUGHT : HEARD;
  const path = `/v1/music/creations/${await person.call(makeTrack, world.gatewayUrl, seconds)}/content`;
  const statuses: number[] = [];
  world.gate.replace(`GET ${path}`, async (forward) => {
    // In the middle of a response, which breaks off. WebKit's player may stall for ever then.
    if (canSeek && statuses.length === EXPIRED_SLICE) world.upstream.expireAccessTokens();
    const response = await forward();
    statuses.push(response.status);
    return response;
  });
  await person.call(begin, `${world.gatewayUrl}/api/upstream${path}`, rate);
  await playsOn(person, 1);
  // WebKit takes the rate only when it begins again.
  await person.call(() => listening.audio.pause());
  await person.call(() => listening.audio.play());
  await playsOn(person, 5);
  for (const position of canSeek ? [150, 30] : []) {
    await person.call(seek, position);
    await playsOn(person, 5);
  }
  world.upstream.expireAccessTokens();
  await playsOn(person, more);
  await world.restartGateway();
  await playsOn(person, 15);
  await person.call(() => listening.audio.pause());
  // As the gateway does with a connection on which nothing has moved for a minute.
  world.network.break();
  await person.call(() => listening.audio.play());
  await playsOn(person, 15);
  if (canSeek) await person.call(seek, seconds - 10);
  await reaches(person, seconds - 1);
  // What is skipped would be a gap in the sound. A busy browser looks once in two seconds.
  expect(await person.call(() => listening.jump)).toBeLessThan(2 * rate);
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

async function playsOn(person: Person, seconds: number): Promise<void> {
  const from = await person.call(() => listening.audio.currentTime);
  await reaches(person, from + seconds);
}

/** Waits as long as the sound goes on. */
async function reaches(person: Person, seconds: number): Promise<void> {
  let movedAt = performance.now();
  let last = -1;
  while (performance.now() < movedAt + SILENCE_MS) {
    const at = await person.call(() => listening.audio.currentTime);
    if (at >= seconds) return;
    if (at !== last) movedAt = performance.now();
    last = at;
    await Bun.sleep(100);
  }
  throw new Error(`is silent at second ${last}, and did not reach second ${seconds}`);
}
