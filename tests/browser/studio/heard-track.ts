/** A track that the studio plays while it is disturbed: what of it has arrived, what is heard, and what it has cost. */

import { expect } from 'bun:test';
import type { LiveMessage } from '../../../src/client/live-audio/live-audio.ts';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { english } from '../../../src/demo/studio/english.ts';
import type { openStudio, Studio } from './page.ts';

const PROMPT = 'Waves under a pier';
const MODEL = 'sandbox-music-2';
const CREDITS_PER_SECOND = 2;
const SECONDS = 24;
const TRACK_BYTES = wavSize(SECONDS * 1_000);
const BYTES_PER_SECOND = 48_000;
const HEADER_BYTES = 44;
const LIVE = /^\/live\//;
const BALANCE = 5_000;
/** Faster than a person listens, so that a test need not take as long. */
const RATE = 4;
/** So much Chromium wants ahead before it starts, and also before it goes on after a hiccup. */
const UNPLAYABLE_SECONDS = 6;

/** A browser on a busy machine stops for so long. */
const HICCUP_MS = 5_000;

/** The sound stopped at this position, when so many bytes were here. */
interface Silence {
  readonly at: number;
  readonly bytes: number;
  /** How long. Negative for one that has not ended. */
  ms: number;
}

type OpenedStudio = Awaited<ReturnType<typeof openStudio>>;

/** Orders a track of which this share arrives; the rest follows when it is released. */
export async function hearTrack(studio: OpenedStudio, share: number) {
  const [heard, sources] = [await watch(studio), await studio.loads()];
  const rates = { playbackRate: RATE, defaultPlaybackRate: RATE };
  await studio.audio.evaluate((element, rates) => void Object.assign(element, rates), rates);
  const audio = studio.world.gate.holdAudio(Math.ceil(share * TRACK_BYTES));
  await studio.order({ prompt: PROMPT, seconds: SECONDS });
  const arrivedSeconds = (share * TRACK_BYTES) / BYTES_PER_SECOND;
  return {
    release: audio.release,
    /** Waits until all that has to arrive for now is here. */
    arrives: () =>
      studio.page.waitForFunction(([seen, bytes]) => (seen?.bytes ?? 0) >= bytes, [
        heard,
        Math.ceil(share * TRACK_BYTES),
      ] as const),
    /** Waits until the sound has come as far as the browser plays what is here. */
    playsWhatIsHere: () => studio.playsBeyond(arrivedSeconds - UNPLAYABLE_SECONDS),
    /** Waits until the track is complete, and checks that nobody could tell that it was disturbed. */
    async isWhole() {
      await studio.says(english.complete);
      await studio.hides(english.reconnecting);
      await studio.ends();
      const { hash, silences } = await heard.evaluate(async (seen) => {
        const digest = await crypto.subtle.digest('SHA-256', await new Blob(seen.pieces).arrayBuffer());
        return { hash: new Uint8Array(digest).toHex(), silences: seen.silences };
      });
      expect(hash).toBe(undisturbedHash());
      expect(await sources()).toEqual([expect.stringMatching(LIVE)]);
      const avoidable = silences.filter(({ at, bytes, ms }) => {
        const secondsAhead = (bytes - HEADER_BYTES) / BYTES_PER_SECOND - at;
        return secondsAhead > UNPLAYABLE_SECONDS && ms > HICCUP_MS;
      });
      expect(avoidable).toEqual([]);
      await isPaidOnce(studio);
    },
  };
}

/** The player has the file of the track, whose bytes are those of an undisturbed one. */
export async function playsWholeFile({ audio }: Studio): Promise<void> {
  const hash = await audio.evaluate(async (element: HTMLAudioElement) => {
    const response = await fetch(element.src, { credentials: 'include' });
    const digest = await crypto.subtle.digest('SHA-256', await response.arrayBuffer());
    return new Uint8Array(digest).toHex();
  });
  expect(hash).toBe(undisturbedHash());
}

/** There is one track, and it was charged for once. */
export async function isPaidOnce(studio: OpenedStudio): Promise<void> {
  await studio
    .region(english.account)
    .getByText((BALANCE - SECONDS * CREDITS_PER_SECOND).toLocaleString('en'))
    .waitFor();
  expect(studio.upstream.counts().generations).toBe(1);
  expect(await studio.tracks.count()).toBe(1);
}

/** Records what the page gives to the service worker, and when the sound has to wait. */
function watch({ page }: Studio) {
  return page.evaluateHandle(() => {
    const seen = {
      bytes: 0,
      pieces: [] as Uint8Array<ArrayBuffer>[],
      silences: [] as Silence[],
    };
    const worker = navigator.serviceWorker.controller;
    const post = worker?.postMessage.bind(worker);
    Object.assign(worker ?? {}, {
      postMessage(message: LiveMessage) {
        if (message.kind === 'piece') {
          seen.pieces.push(message.piece);
          seen.bytes += message.piece.length;
        }
        post?.(message);
      },
    });
    const audio = document.querySelector('audio');
    let silence: Silence | undefined;
    for (const event of ['waiting', 'pause', 'error', 'emptied']) {
      audio?.addEventListener(event, () => {
        // Before its first sound, the browser collects some seconds.
        if (silence || audio.currentTime === 0) return;
        silence = { at: audio.currentTime, bytes: seen.bytes, ms: -performance.now() };
        seen.silences.push(silence);
      });
    }
    audio?.addEventListener('timeupdate', () => {
      if (!silence || audio.currentTime <= silence.at) return;
      silence.ms += performance.now();
      silence = undefined;
    });
    return seen;
  });
}

/** The SHA-256 of the audio that the sandbox composes for the order. */
function undisturbedHash(): string {
  const audio = renderWav(
    composeTrack({ model: MODEL, prompt: PROMPT, lengthMs: SECONDS * 1_000 }),
    0,
    TRACK_BYTES,
  );
  return new Bun.CryptoHasher('sha256').update(audio).digest('hex');
}
