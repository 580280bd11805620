/**
 * Plays audio while it arrives, whatever its format: an `audio` element takes a response's stream, and a service
 * worker (`live-audio-worker.ts`) answers with the one that the page has.
 */

export const LIVE_PATH = '/live/';
const WORKER = '/live-audio-worker.js';

/** What the page posts to the worker. */
export type LiveMessage = { readonly id: string } & (
  | { readonly kind: 'begin'; readonly contentType: string }
  | { readonly kind: 'piece'; readonly piece: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'end' | 'break' }
);

/** One track on its way to an `audio` element. */
export interface LiveTrack {
  /** The element's `src`. */
  readonly url: string;
  add(piece: Uint8Array<ArrayBuffer>): void;
  end(): void;
  /** The track will not be complete. */
  break(): void;
}

export interface LiveAudio {
  /** Undefined where no service worker serves this page: then the track plays when it is complete. */
  begin(contentType: string): LiveTrack | undefined;
}

/** What of `ServiceWorkerContainer` is used here. */
interface Workers {
  readonly controller: { postMessage(message: LiveMessage): void } | null;
  register(url: string): Promise<unknown>;
}

/** `workers` is `navigator.serviceWorker`, which some browsers have not, or not in private windows. */
export function createLiveAudio(workers: Workers | undefined): LiveAudio {
  // Without a worker the page works all the same.
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
