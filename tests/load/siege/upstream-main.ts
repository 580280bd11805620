/** The upstream and identity provider of a gateway under siege. It prints its address, and ends with its stdin. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

const Order = Type.Object({ prompt: Type.String() });
const Token = Type.Object({ refresh_token: Type.String() });
const track = new Blob([Buffer.alloc(40_000_000, 'a public track; ')]);
const details = Buffer.alloc(20_000_000, '{"details": 1}  ');
/** How long it takes to sign a session out. */
const LOGOUT_MS = 250;
/** Longer than 150 orders need to arrive. */
const REPLAY_MS = 2000;
/** The refresh tokens that were signed out. */
const signedOut = new Set<string>();
let refreshes = 0;
const PIECES = 40;
const PIECE_BYTES = 10_000;
/** Between two pieces, so that a generation streams for some seconds. */
const PIECE_MS = 100;

function never(request: Request, server: Bun.Server<undefined>): Promise<Response> {
  server.timeout(request, 0);
  return new Promise(() => {});
}

async function* paidAudio(idempotencyKey: string) {
  for (let piece = 0; piece < PIECES; piece++) {
    await Bun.sleep(PIECE_MS);
    yield Buffer.alloc(PIECE_BYTES, `${idempotencyKey}, piece ${piece}; `);
  }
}

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  routes: {
    '/v1/me': (request) => {
      const token = request.headers.get('authorization');
      if (token === 'Bearer expired') return Response.json({}, { status: 401 });
      return Response.json({ token });
    },
    '/v1/auth/refresh': {
      POST: () => {
        refreshes++;
        return Response.json({
          access_token: `${refreshes}-${'x'.repeat(1500)}`,
          refresh_token: `r-${refreshes}`,
        });
      },
    },
    '/v1/auth/logout': {
      POST: async (request) => {
        signedOut.add(Value.Parse(Token, await request.json()).refresh_token);
        await Bun.sleep(LOGOUT_MS);
        return new Response(null, { status: 204 });
      },
    },
    '/v1/signed-out': () => Response.json([...signedOut]),
    '/v1/music/creations/:id/content': () => new Response(track),
    '/v1/export': { POST: () => new Response(track) },
    '/v1/music': {
      POST: async (request, server) => {
        const { prompt } = Value.Parse(Order, await request.json());
        if (prompt === 'never') return never(request, server);
        if (prompt === 'replayed') return Bun.sleep(REPLAY_MS).then(() => new Response(track));
        return new Response(paidAudio(request.headers.get('idempotency-key') ?? ''));
      },
    },
    '/v1/music/public/:id': () => new Response(details),
    '/v1/music/public/:id/content': () => new Response(track),
    '/oauth/token': never,
  },
  fetch: () => new Response(null, { status: 404 }),
});
console.log(server.url.origin);
await Bun.stdin.bytes();
process.exit(0);
