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

/** The used part of `HTMLAudioElement`. */
interface AudioElement {
  src: string;
  crossOrigin: string | null;
  currentTime: number;
  readonly paused: boolean;
  readonly ended: boolean;
  readonly error: unknown;
  play(): Promise<void>;
  addEventListener(type: string, listener: () => void, options: { readonly signal: AbortSignal }): void;
}

/** What the client's `generate` returns. */
interface ArrivingGeneration {
  readonly creationId: string | null;
  readonly contentType: string;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/**
 * Plays a track while it arrives. The element gets the finished track's own address, and with it all of its duration to
 * seek in, once that interrupts nobody: when it is paused, sought in or over. Without a worker, it plays from there.
 *
 * @param contentUrl the client's
 * @returns the id of the creation, when it has arrived
 * @throws what the body fails with
 */
export async function playArriving(
  liveAudio: LiveAudio,
  audio: AudioElement,
  { creationId, contentType, body }: ArrivingGeneration,
  contentUrl: (creationId: string) => string,
): Promise<string | null> {
  const live = liveAudio.begin(contentType);
  // The gateway's address needs it; the worker's allows it.
  audio.crossOrigin = 'use-credentials';
  const arriving = new AbortController();
  const isWanted = watchPlaying(audio, arriving);
  if (live) start(audio, live.url);
  const { src } = audio;
  const pieces = new WritableStream<Uint8Array<ArrayBuffer>>({
    write: (piece) => live?.add(piece),
    close: () => live?.end(),
    abort: () => live?.break(),
  });
  await body.pipeTo(pieces).finally(() => arriving.abort());
  if (creationId === null) return null;
  if (live) replaceWhenQuiet(audio, src, contentUrl(creationId), isWanted());
  else if (audio.src === src) start(audio, contentUrl(creationId));
  return creationId;
}

function start(audio: AudioElement, url: string): void {
  audio.src = url;
  // Where the browser does not allow it, the user presses Play.
  audio.play().catch(() => {});
}

/**
 * Returns a function that says whether the element plays, or has played until its error. Chromium pauses an element of
 * the page before the `error` event.
 */
function watchPlaying(audio: AudioElement, { signal }: AbortController): () => boolean {
  let plays = false;
  let wasCut = false;
  const listen = (type: string, listener: () => void) => audio.addEventListener(type, listener, { signal });
  listen('play', () => {
    plays = true;
    wasCut = false;
  });
  listen('pause', () => {
    plays = false;
  });
  listen('error', () => {
    wasCut = plays && audio.paused;
  });
  return () => plays || wasCut;
}

/**
 * Does nothing if the element has got another source.
 *
 * @param isWanted whether to play on after an error that came before
 */
function replaceWhenQuiet(audio: AudioElement, live: string, finished: string, isWanted: boolean): void {
  const done = new AbortController();
  const replace = (playsOn: boolean) => {
    done.abort();
    if (audio.src !== live) return;
    const { ended, currentTime } = audio;
    audio.src = finished;
    // Before the file is loaded, this sets where it starts.
    if (!ended) audio.currentTime = currentTime;
    if (playsOn) audio.play().catch(() => {});
  };
  // It plays until the first of these, whatever an error has made of `paused` by then.
  const events = { pause: false, seeking: true, error: true };
  if (audio.error) replace(isWanted);
  else if (audio.paused) replace(false);
  else
    for (const [type, playsOn] of Object.entries(events))
      audio.addEventListener(type, () => replace(playsOn), done);
}
