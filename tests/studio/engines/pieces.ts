/** A track as the page receives it piece by piece, whatever happens to its connection. */

import type { LiveMessage } from '../../../src/client/live-audio/live-audio.ts';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';

const SECONDS = 14;

export const ORDER = {
  prompt: 'Waves under a pier',
  seconds: SECONDS,
  bytes: wavSize(SECONDS * 1_000),
  credits: 2 * SECONDS,
};

declare global {
  /** The SHA-256 of the pieces that {@link watchPieces} has seen. */
  var hashOfPieces: () => Promise<string>;
}

/** Runs in a page that a service worker controls: notes what the page gives to it from now on. */
export function watchPieces(): void {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  globalThis.hashOfPieces = async () => {
    const track = await new Blob(pieces).arrayBuffer();
    return new Uint8Array(await crypto.subtle.digest('SHA-256', track)).toHex();
  };
  const worker = navigator.serviceWorker.controller;
  const post = worker?.postMessage.bind(worker);
  Object.assign(worker ?? {}, {
    postMessage(message: LiveMessage) {
      if (message.kind === 'piece') pieces.push(message.piece);
      post?.(message);
    },
  });
}

/** The SHA-256 of the audio that the sandbox composes for the order. */
export function undisturbedHash(): string {
  const { prompt } = ORDER;
  const track = composeTrack({ model: 'sandbox-music-2', prompt, lengthMs: SECONDS * 1_000 });
  return new Bun.CryptoHasher('sha256').update(renderWav(track, 0, ORDER.bytes)).digest('hex');
}
