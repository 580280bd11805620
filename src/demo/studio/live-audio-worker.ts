/**
 * The service worker that lets an `audio` element play a track while it arrives: the page posts the pieces, and a
 * request for `/live/<id>` is answered with them. It touches no other request.
 */

import { LIVE_PATH, type LiveMessage } from './live-audio.ts';

/** What of `ServiceWorkerGlobalScope` is used here: the compiler's library for workers excludes the one for pages. */
interface WorkerScope {
  addEventListener(type: 'install' | 'activate', listener: (event: LifetimeEvent) => void): void;
  addEventListener(type: 'message', listener: (event: MessageEvent<LiveMessage>) => void): void;
  addEventListener(type: 'fetch', listener: (event: RequestEvent) => void): void;
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
}
interface LifetimeEvent {
  waitUntil(work: Promise<unknown>): void;
}
interface RequestEvent {
  readonly request: Request;
  respondWith(answer: Response | Promise<Response>): void;
}
declare const self: WorkerScope;

interface LiveTrack {
  readonly contentType: string;
  readonly audio: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  isAnswered: boolean;
  isOver: boolean;
}

/** How long a request waits for its track: the two come on ways of their own, in any order. */
const EARLY_REQUEST_MS = 5_000;

const tracks = new Map<string, LiveTrack>();
/** The tracks that were played or left, by id. */
const over = new Set<string>();
/** The requests that came before their track, by its id. */
const early = new Map<string, () => void>();

self.addEventListener('install', (event) => event.waitUntil(self.skipWaiting()));
// The page that registers the worker is served by it at once, not only when it is loaded again.
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('message', ({ data }) => take(data));
self.addEventListener('fetch', (event) => {
  const { pathname } = new URL(event.request.url);
  if (pathname.startsWith(LIVE_PATH)) event.respondWith(answer(pathname.slice(LIVE_PATH.length)));
});

function take(message: LiveMessage): void {
  const { id } = message;
  if (message.kind === 'begin') {
    const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>();
    const writer = writable.getWriter();
    tracks.set(id, {
      contentType: message.contentType,
      audio: readable,
      writer,
      isAnswered: false,
      isOver: false,
    });
    early.get(id)?.();
    return;
  }
  const track = tracks.get(id);
  if (!track) return;
  deliver(track, message);
  track.isOver = message.kind !== 'piece';
  forgetWhenDone(id, track);
}

function deliver({ writer }: LiveTrack, message: Exclude<LiveMessage, { kind: 'begin' }>): void {
  // It fails when the element has stopped listening, which it may.
  const listenerGone = () => {};
  if (message.kind === 'piece') writer.write(message.piece).catch(listenerGone);
  else if (message.kind === 'end') writer.close().catch(listenerGone);
  else writer.abort().catch(listenerGone);
}

function answer(id: string): Response | Promise<Response> {
  if (tracks.has(id) || over.has(id)) return answerNow(id);
  const { promise, resolve } = Promise.withResolvers<void>();
  early.set(id, resolve);
  setTimeout(resolve, EARLY_REQUEST_MS);
  return promise.then(() => {
    early.delete(id);
    return answerNow(id);
  });
}

/** A stream can be read once, so a second request finds nothing. */
function answerNow(id: string): Response {
  const track = tracks.get(id);
  if (!track || track.isAnswered) return new Response(null, { status: 404 });
  track.isAnswered = true;
  forgetWhenDone(id, track);
  return new Response(track.audio, {
    headers: { 'content-type': track.contentType, 'cache-control': 'no-store' },
  });
}

function forgetWhenDone(id: string, { isAnswered, isOver }: LiveTrack): void {
  if (!isAnswered || !isOver) return;
  tracks.delete(id);
  over.add(id);
}
