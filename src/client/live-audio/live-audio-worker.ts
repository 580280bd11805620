/**
 * The service worker that lets an `audio` element play a track while it arrives. The page posts the pieces, and the
 * response to `/live/<id>` streams them. The worker ignores all other requests.
 */

import { LIVE_PATH, type LiveMessage } from './live-audio.ts';

/** The used part of `ServiceWorkerGlobalScope`: TypeScript cannot load its library together with that for pages. */
interface WorkerScope {
  addEventListener(type: 'install', listener: (event: InstallEvent) => void): void;
  addEventListener(type: 'activate', listener: (event: LifetimeEvent) => void): void;
  addEventListener(type: 'message', listener: (event: MessageEvent<LiveMessage>) => void): void;
  addEventListener(type: 'fetch', listener: (event: RequestEvent) => void): void;
  readonly location: { readonly origin: string };
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
}
interface LifetimeEvent {
  waitUntil(work: Promise<unknown>): void;
}
interface InstallEvent extends LifetimeEvent {
  /** In Chromium. @see https://w3c.github.io/ServiceWorker/#register-router-method */
  addRoutes?(rule: { condition: { not: { urlPattern: string } }; source: 'network' }): Promise<void>;
}
interface RequestEvent {
  readonly request: Request;
  respondWith(response: Response | Promise<Response>): void;
}
declare const self: WorkerScope;

interface LiveTrack {
  readonly contentType: string;
  readonly audio: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  isServed: boolean;
  isOver: boolean;
}

/** With an id as `crypto.randomUUID` makes it. The web app, and other sites, may have paths of their own there. */
const TRACK = new RegExp(`^${LIVE_PATH}([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`);
/** How long a request waits for the first message about its track, because the two may arrive in any order. */
const EARLY_REQUEST_MS = 5_000;

const tracks = new Map<string, LiveTrack>();
/** The ids of the tracks that are finished. */
const over = new Set<string>();
/** The requests that arrived before their track, by track id. */
const early = new Map<string, () => void>();

self.addEventListener('install', (event) => {
  // Chromium loses what a page that is left sends by way of its worker.
  const others = { condition: { not: { urlPattern: `${LIVE_PATH}*` } }, source: 'network' } as const;
  const routed = event.addRoutes?.(others).catch(() => {});
  event.waitUntil(Promise.all([routed, self.skipWaiting()]));
});
// The worker then controls the page that registers it without a reload.
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('message', ({ data }) => take(data));
self.addEventListener('fetch', (event) => {
  const { origin, pathname } = new URL(event.request.url);
  const [, id] = TRACK.exec(pathname) ?? [];
  if (id && origin === self.location.origin) event.respondWith(respond(id));
});

function take(message: LiveMessage): void {
  const { id } = message;
  if (message.kind === 'begin') {
    const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>();
    const writer = writable.getWriter();
    tracks.set(id, {
      contentType: audioType(message.contentType),
      audio: readable,
      writer,
      isServed: false,
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

/** A page served from here would run on the studio's own origin. */
function audioType(contentType: string): string {
  return /^audio\//i.test(contentType) ? contentType : 'audio/mpeg';
}

function deliver({ writer }: LiveTrack, message: Exclude<LiveMessage, { kind: 'begin' }>): void {
  // A write fails when the element has stopped listening, which is not an error.
  const listenerGone = () => {};
  if (message.kind === 'piece') writer.write(message.piece).catch(listenerGone);
  else if (message.kind === 'end') writer.close().catch(listenerGone);
  else writer.abort().catch(listenerGone);
}

function respond(id: string): Response | Promise<Response> {
  if (tracks.has(id) || over.has(id)) return respondNow(id);
  const { promise, resolve } = Promise.withResolvers<void>();
  early.set(id, resolve);
  setTimeout(resolve, EARLY_REQUEST_MS);
  return promise.then(() => {
    early.delete(id);
    return respondNow(id);
  });
}

/** A stream can be read only once, so a second request gets 404. */
function respondNow(id: string): Response {
  const track = tracks.get(id);
  if (!track || track.isServed) return new Response(null, { status: 404 });
  track.isServed = true;
  forgetWhenDone(id, track);
  return new Response(track.audio, {
    headers: {
      'content-type': track.contentType,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
    },
  });
}

function forgetWhenDone(id: string, { isServed, isOver }: LiveTrack): void {
  if (!isServed || !isOver) return;
  tracks.delete(id);
  over.add(id);
}
