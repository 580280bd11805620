/**
 * The upstream as a program: `upstream-main.ts <folder of the tracks> <uses per access token> <idle seconds>`; ends
 * with its stdin.
 */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { audioFor, halvesFor, MODELS, smallTrack } from './content.ts';
import { RotatingSessions } from './rotating-sessions.ts';

const [folder = '', usesPerToken = '', idleSeconds = ''] = process.argv.slice(2);
const sessions = new RotatingSessions(Number(usesPerToken));
const small = smallTrack();
let held = 0;
let unexpected = 0;
const released = Promise.withResolvers<void>();

const Generation = Type.Object({ prompt: Type.String() });
const Refresh = Type.Object({ refresh_token: Type.String() });
type Params = Readonly<Record<string, string>>;
type Answer = (request: Request, params: Params, user: string) => Response | Promise<Response>;

/** Answers only to a valid access token. */
function signedIn(answer: Answer) {
  return (request: Request & { readonly params: Params }) => {
    const user = sessions.userOf(request.headers.get('authorization'));
    if (user === undefined) return Response.json({ error: { message: 'expired' } }, { status: 401 });
    return answer(request, request.params, user);
  };
}

async function generate(request: Request): Promise<Response> {
  const { prompt } = Value.Parse(Generation, await request.json());
  if (prompt === 'refuse') return Response.json({ error: { message: 'no credits' } }, { status: 402 });
  const audio = audioFor(request.headers.get('idempotency-key') ?? '');
  const headers = { 'content-type': 'audio/mpeg', 'x-generation-id': 'generation-1' };
  if (prompt === 'in pieces') {
    return new Response(twoPieces(audio.subarray(0, 2000), Bun.sleep(3), audio.subarray(2000)), { headers });
  }
  if (prompt === 'hold') await hold();
  return new Response(audio, { headers });
}

/** What is held stays so until `POST /control/release`. */
function hold(): Promise<void> {
  held++;
  return released.promise;
}

function twoPieces(first: Buffer, pause: Promise<void>, second: Buffer): ReadableStream<Uint8Array> {
  let isWanted = true;
  return new ReadableStream({
    async start(controller) {
      controller.enqueue(first);
      await pause;
      if (!isWanted) return;
      controller.enqueue(second);
      controller.close();
    },
    cancel() {
      isWanted = false;
    },
  });
}

function heldTrack(id: string): Response {
  const [first, second] = halvesFor(id);
  return new Response(twoPieces(first, hold(), second), { headers: { 'content-type': 'audio/mpeg' } });
}

function rangeOf(request: Request): Response {
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get('range') ?? '') ?? [];
  if (first === undefined || last === undefined) return new Response(small);
  return new Response(small.subarray(Number(first), Number(last) + 1), {
    status: 206,
    headers: { 'content-range': `bytes ${first}-${last}/${small.length}`, 'content-type': 'audio/mpeg' },
  });
}

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: Number(idleSeconds),
  routes: {
    '/v1/me': signedIn((_request, _params, user) => Response.json({ user })),
    '/v1/models': signedIn(
      () => new Response(MODELS, { headers: { 'content-type': 'application/json; charset=utf-8' } }),
    ),
    '/v1/music': { POST: signedIn(generate) },
    '/v1/auth/refresh': {
      POST: async (request) => {
        const { refresh_token: refreshToken } = Value.Parse(Refresh, await request.json());
        return sessions.refresh(refreshToken);
      },
    },
    '/v1/music/creations/:id': {
      PATCH: signedIn(async (request, { id = '' }) => Response.json({ id, set: await request.json() })),
      GET: signedIn((_request, { id = '' }) => Response.json({ id })),
    },
    '/v1/music/creations/:id/content': signedIn((_, { id }) => new Response(Bun.file(`${folder}/${id}`))),
    '/v1/music/small/content': signedIn(rangeOf),
    '/v1/music/held/:id/content': signedIn((_, { id = '' }) => heldTrack(id)),
    '/v1/unavailable': signedIn(() => Response.json({ error: { message: 'later' } }, { status: 503 })),
    // Until the gateway gives it up.
    '/v1/unanswered': (request, server) => {
      server.timeout(request, 0);
      return new Promise<Response>(() => {});
    },
    '/v1/music/public/:id': (request) => Response.json({ public: request.params.id }),
    '/v1/music/public/:id/content': (request) => new Response(audioFor(request.params.id)),
    '/control/figures': () =>
      Response.json({ held, unexpected, refreshes: sessions.refreshes, reused: sessions.reused }),
    '/control/release': {
      POST: () => {
        released.resolve();
        return new Response();
      },
    },
  },
  fetch: () => {
    unexpected++;
    return new Response(null, { status: 599 });
  },
});
console.log(server.url.origin);
// Whoever started it holds the other end: it never outlives them.
await Bun.stdin.bytes();
process.exit(0);
