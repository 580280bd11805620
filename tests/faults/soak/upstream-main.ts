/**
 * The upstream as a program: `upstream-main.ts <folder of the tracks> <uses per access token> <idle seconds>`; ends
 * with its stdin.
 */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { audioFor, halvesFor, MODELS, SMALL_TRACK } from './content.ts';
import { RotatingSessions } from './rotating-sessions.ts';

const [folder = '', usesPerToken = '', idleSeconds = ''] = process.argv.slice(2);
const sessions = new RotatingSessions(Number(usesPerToken));
const AUDIO = { 'content-type': 'audio/mpeg', 'x-generation-id': 'generation-1' };
let held = 0;
let unexpected = 0;
const released = Promise.withResolvers<void>();

const Generation = Type.Object({ prompt: Type.String() });
const Refresh = Type.Object({ refresh_token: Type.String() });

/** Requires a valid access token. */
function signedIn(
  respond: (request: Bun.BunRequest, id: string, user: string) => Response | Promise<Response>,
) {
  return (request: Bun.BunRequest) => {
    const user = sessions.userOf(request.headers.get('authorization'));
    if (user === undefined) return Response.json({ error: { message: 'expired' } }, { status: 401 });
    return respond(request, idOf(request), user);
  };
}

function idOf({ params }: { readonly params: Readonly<Record<string, string>> }): string {
  return params['id'] ?? '';
}

async function generate(request: Request): Promise<Response> {
  const { prompt } = Value.Parse(Generation, await request.json());
  if (prompt === 'refuse') return Response.json({ error: { message: 'no credits' } }, { status: 402 });
  const audio = audioFor(request.headers.get('idempotency-key') ?? '');
  if (prompt === 'in pieces') return twoPieces(audio.subarray(0, 2000), Bun.sleep(3), audio.subarray(2000));
  if (prompt === 'hold') await hold();
  return new Response(audio, { headers: AUDIO });
}

/** Waits for `POST /control/release`. */
function hold(): Promise<void> {
  held++;
  return released.promise;
}

function twoPieces(first: Buffer, pause: Promise<void>, second: Buffer): Response {
  const pieces = async function* () {
    yield first;
    await pause;
    yield second;
  };
  return new Response(pieces(), { headers: AUDIO });
}

function heldTrack(id: string): Response {
  const [first, second] = halvesFor(id);
  return twoPieces(first, hold(), second);
}

function rangeOf(request: Request): Response {
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get('range') ?? '') ?? [];
  return new Response(SMALL_TRACK.subarray(Number(first), Number(last) + 1), {
    status: 206,
    headers: { ...AUDIO, 'content-range': `bytes ${first}-${last}/${SMALL_TRACK.length}` },
  });
}

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: Number(idleSeconds),
  routes: {
    '/v1/me': signedIn((_request, _id, user) => Response.json({ user })),
    '/v1/models': signedIn(() => new Response(MODELS, { headers: { 'content-type': 'application/json' } })),
    '/v1/music': { POST: signedIn(generate) },
    '/v1/auth/refresh': {
      POST: async (request) => sessions.refresh(Value.Parse(Refresh, await request.json()).refresh_token),
    },
    '/v1/music/creations/:id': {
      PATCH: signedIn(async (request, id) => Response.json({ id, set: await request.json() })),
      GET: signedIn((_, id) => Response.json({ id })),
    },
    '/v1/music/creations/:id/content': signedIn((_, id) => new Response(Bun.file(`${folder}/${id}`))),
    '/v1/music/small/content': signedIn(rangeOf),
    '/v1/music/held/:id/content': signedIn((_, id) => heldTrack(id)),
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
// Whoever started it holds the other end, so that it never outlives them.
await Bun.stdin.bytes();
process.exit(0);
