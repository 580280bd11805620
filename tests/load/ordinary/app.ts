/**
 * What a studio's app asks an upstream for: small JSON that names its user, so that a response to somebody else is
 * noticed. The name of a user says how long the upstream takes for him.
 */

/** In KB. The others have 1. */
const SIZES: Readonly<Record<string, number>> = {
  '/v1/models': 2,
  '/v1/music/creations': 8,
  '/v1/activity': 4,
  '/v1/summary': 3,
};
const USER = /^Bearer (takes-(\d+)-ms-.+)$/;
const EVENTS = 4;
const EVENT_MS = 1000;
const EVENT_STREAM = { 'content-type': 'text/event-stream' };
let eventsEnd = Promise.withResolvers<void>();

export function userOf(takesMs: number, name: string): string {
  return `takes-${takesMs}-ms-${name}`;
}

/** @param received how many bytes of a body have arrived */
export function responseTo(method: string, path: string, user: string, received: number): string {
  const text = 'x'.repeat((SIZES[path] ?? 1) * 1024);
  return JSON.stringify({ method, path, user, received, text });
}

export function eventsOf(user: string): string[] {
  return Array.from({ length: EVENTS }, (_, event) => `id: ${event}\ndata: for ${user}\n\n`);
}

/** Lets the streams of events that are open send the rest, and end. */
export function endEvents(): Response {
  eventsEnd.resolve();
  eventsEnd = Promise.withResolvers();
  return new Response();
}

/** Responds to the users of an app; undefined to others. */
export async function respondToApp(request: Request): Promise<Response | undefined> {
  const [, user, takesMs] = USER.exec(request.headers.get('authorization') ?? '') ?? [];
  if (user === undefined) return undefined;
  const { pathname } = new URL(request.url);
  if (pathname === '/v1/events') return new Response(nowAndThen(user), { headers: EVENT_STREAM });
  const { byteLength } = await request.arrayBuffer();
  await Bun.sleep(Number(takesMs));
  const headers = { 'content-type': 'application/json' };
  return new Response(responseTo(request.method, pathname, user, byteLength), { headers });
}

/** The last one at the end. */
async function* nowAndThen(user: string) {
  const end = eventsEnd.promise;
  for (const [index, event] of eventsOf(user).entries()) {
    await (index === EVENTS - 1 ? end : Promise.race([Bun.sleep(index && EVENT_MS), end]));
    yield event;
  }
}
