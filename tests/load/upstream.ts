/**
 * The upstream and identity provider of a gateway under load, a process of its own: `upstream.ts <bytes of a track>`. It
 * prints its address, and ends with its stdin.
 */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { endEvents, respondToApp } from './ordinary/app.ts';

export const TRACKS = 4;
/** To a code and to refresh tokens that begin so, there is never a response. */
export const UNANSWERED = 'unanswered';
/** What users whose name begins so export is small. */
export const CHEAP = 'cheap';
/** How long it takes to sign a session out. */
const LOGOUT_MS = 250;
/** Longer than 150 orders need to arrive. */
const REPLAY_MS = 1000;
/** Between two pieces. A generation streams for a second, so few of those that users pay for are in flight at once. */
const PIECE_MS = 25;
/** Between two pieces of a generation that is heard while it is made. */
const HEARD_PIECE_MS = 250;
const Order = Type.Object({ prompt: Type.String() });
const SignOut = Type.Object({ refresh_token: Type.String() });

/** What is sent of a generation. */
export function piecesFor(key: string): Buffer[] {
  return Array.from({ length: 40 }, (_, piece) => Buffer.alloc(10_000, `${key}, piece ${piece}; `));
}

/** Several different tracks that never repeat, so that bytes that reach the wrong reader are noticed. */
export function tracksOf(bytes: number): Uint8Array<ArrayBuffer>[] {
  return Array.from({ length: TRACKS }, (_, index) => {
    const words = new Uint32Array(bytes / 4);
    for (let at = 0; at < words.length; at++) words[at] = at * TRACKS + index;
    return new Uint8Array(words.buffer);
  });
}

function serve(trackBytes: number) {
  const bytes = tracksOf(trackBytes);
  const tracks = bytes.map((track) => new Blob([track]));
  const state = { held: 0, refreshes: 0, signIns: 0, signedOut: [] as string[] };
  const released = Promise.withResolvers<void>();
  const whole = () => new Response(tracks[0]);
  const generate = async (request: Request): Promise<Response> => {
    const key = request.headers.get('idempotency-key') ?? '';
    const { prompt } = Value.Parse(Order, await request.json());
    if (prompt === 'never') return never();
    if (prompt === 'replayed') return Bun.sleep(REPLAY_MS).then(whole);
    if (prompt === 'paid') return new Response(slowly(key));
    const [kind, track, ...pace] = prompt.split(' ');
    if (kind === 'made') return new Response(tracks[Number(track)]);
    if (kind === 'heard') return new Response(atSpeed(pace.map(Number), bytes[Number(track)]));
    state.held++;
    await released.promise;
    return new Response(Buffer.concat(piecesFor(key)));
  };
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    routes: {
      '/state': () => Response.json(state),
      '/release': () => {
        released.resolve();
        return new Response();
      },
      '/end-events': endEvents,
      '/v1/me': async (request) => {
        const token = request.headers.get('authorization');
        const response = await respondToApp(request);
        if (response) return response;
        return Response.json({ token }, { status: token === 'Bearer expired' ? 401 : 200 });
      },
      // The longest pairs that fit into cookies.
      '/v1/auth/refresh': () => {
        const access_token = `${++state.refreshes}-${'x'.repeat(3500)}`;
        return Response.json({ access_token, refresh_token: `r-${state.refreshes}` });
      },
      '/v1/auth/logout': async (request) => {
        const token = Value.Parse(SignOut, await request.json()).refresh_token;
        if (token.startsWith(UNANSWERED)) return never();
        state.signedOut.push(token);
        await Bun.sleep(LOGOUT_MS);
        return new Response(null, { status: 204 });
      },
      '/v1/music': generate,
      '/v1/music/creations/:id/content': ({ params }) => new Response(tracks[Number(params.id)]),
      '/v1/music/ranged/:id/content': (request) => rangeOf(request, tracks[Number(request.params.id)]),
      '/v1/music/public/:id': whole,
      '/v1/music/public/:id/content': (request) =>
        request.headers.has('range') ? rangeOf(request, tracks[Number(request.params.id)]) : whole(),
      '/v1/export': ({ headers }) =>
        headers.get('authorization')?.startsWith(`Bearer ${CHEAP}`) ? Response.json({}) : whole(),
      '/v1/unread': never,
      '/v1/library': async (request) => Response.json({ bytes: (await request.bytes()).length }),
      '/oauth/token': async (request) =>
        new URLSearchParams(await request.text()).get('code') === UNANSWERED
          ? never()
          : Response.json({ access_token: 'identity' }),
      '/v1/auth/idp': () =>
        Response.json({ access_token: 'signed-in', refresh_token: `s-${state.signIns++}` }),
    },
    fetch: async (request) => (await respondToApp(request)) ?? new Response(null, { status: 404 }),
  });
}

function never(): Promise<Response> {
  return new Promise(() => {});
}

async function* slowly(key: string) {
  for (const piece of piecesFor(key)) {
    await Bun.sleep(PIECE_MS);
    yield piece;
  }
}

async function* atSpeed([bytesPerSecond = 0, seconds = 0]: readonly number[], track = new Uint8Array()) {
  const size = (bytesPerSecond * HEARD_PIECE_MS) / 1000;
  for (let from = 0; from < bytesPerSecond * seconds; from += size) {
    yield track.subarray(from, from + size);
    await Bun.sleep(HEARD_PIECE_MS);
  }
}

function rangeOf({ headers }: Request, track = new Blob()): Response {
  const [, first, asked] = /^bytes=(\d+)-(\d*)$/.exec(headers.get('range') ?? '') ?? [];
  const last = Math.min(asked ? Number(asked) : track.size - 1, track.size - 1);
  const fields = { etag: `"${track.size}"`, 'content-range': `bytes ${first}-${last}/${track.size}` };
  return new Response(track.slice(Number(first), last + 1), { status: 206, headers: fields });
}

if (import.meta.main) {
  void Bun.stdin.bytes().then(() => process.exit(0));
  console.log(serve(Number(process.argv[2])).url.origin);
}
