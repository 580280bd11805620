/**
 * Plays audio of any format while it arrives: an `audio` element can play a streamed response, and a service worker
 * (`live-audio-worker.ts`) makes one from the stream that the page receives.
 */

export const LIVE_PATH = '/live/';
const WORKER = '/live-audio-worker.js';

/** The messages that the page posts to the worker. */
export type LiveMessage = { readonly id: string } & (
  | { readonly kind: 'begin'; readonly contentType: string }
  | { readonly kind: 'piece'; readonly piece: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'end' | 'break' }
);

/** A track that an `audio` element can play while it arrives. */
export interface LiveTrack {
  /** The element's `src`. */
  readonly url: string;
  add(piece: Uint8Array<ArrayBuffer>): void;
  end(): void;
  /** Ends the stream of a track that will not be complete. */
  break(): void;
}

export interface LiveAudio {
  /** Undefined if no service worker controls this page; the track can then only play when it is complete. */
  begin(contentType: string): LiveTrack | undefined;
}

/** The used part of `ServiceWorkerContainer`. */
interface Workers {
  readonly controller: { postMessage(message: LiveMessage): void } | null;
  register(url: string): Promise<unknown>;
}

/** @param workers `navigator.serviceWorker`, which some browsers lack, or lack in private windows */
export function createLiveAudio(workers: Workers | undefined): LiveAudio {
  // A failure is ignored, because the page also works without the worker.
  workers?.register(WORKER).catch(() => {});
  return {
    begin(contentType) {
      const worker = workers?.controller;
      if (!worker) return undefined;
      const id = crypto.randomUUID();
      const post = (message: LiveMessage) => worker.postMessage(message);
      post({ id, kind: 'begin', contentType });
      return {
        url: LIVE_PATH + id,
        add: (piece) => post({ id, kind: 'piece', piece }),
        end: () => post({ id, kind: 'end' }),
        break: () => post({ id, kind: 'break' }),
      };
    },
  };
}
