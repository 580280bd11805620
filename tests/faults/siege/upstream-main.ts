/** The upstream and identity provider of a gateway under siege. It prints its address, and ends with its stdin. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

const Order = Type.Object({ prompt: Type.String() });
const track = new Blob([Buffer.alloc(40_000_000, 'a public track; ')]);
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
    '/v1/me': (request) => Response.json({ token: request.headers.get('authorization') }),
    '/v1/music': {
      POST: async (request, server) => {
        const { prompt } = Value.Parse(Order, await request.json());
        if (prompt === 'never') return never(request, server);
        return new Response(paidAudio(request.headers.get('idempotency-key') ?? ''));
      },
    },
    '/v1/music/public/:id/content': () => new Response(track),
    '/oauth/token': never,
  },
  fetch: () => new Response(null, { status: 404 }),
});
console.log(server.url.origin);
await Bun.stdin.bytes();
process.exit(0);
