/**
 * The upstream and identity provider of a gateway under siege: `upstream-main.ts <folder>`, with a public track `track`
 * in the folder; ends with its stdin.
 */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { PIECES, paidAudio } from './paid-audio.ts';

const [folder = ''] = process.argv.slice(2);
const Order = Type.Object({ prompt: Type.String() });
/** Between two pieces, so that a generation streams for some seconds. */
const PIECE_MS = 100;
let ordered = 0;

function never(request: Request, server: Bun.Server<undefined>): Promise<Response> {
  server.timeout(request, 0);
  return new Promise(() => {});
}

function paid(key: string): Response {
  const audio = paidAudio(key);
  const size = Math.ceil(audio.length / PIECES);
  const pieces = (async function* () {
    for (let start = 0; start < audio.length; start += size) {
      await Bun.sleep(PIECE_MS);
      yield audio.subarray(start, start + size);
    }
  })();
  return new Response(pieces, { headers: { 'content-type': 'audio/mpeg' } });
}

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  routes: {
    '/v1/me': (request) => Response.json({ token: request.headers.get('authorization') }),
    '/v1/music': {
      POST: async (request, server) => {
        ordered++;
        const { prompt } = Value.Parse(Order, await request.json());
        if (prompt === 'never') return never(request, server);
        return paid(request.headers.get('idempotency-key') ?? '');
      },
    },
    '/v1/music/public/:id/content': () => new Response(Bun.file(`${folder}/track`)),
    '/oauth/token': never,
    '/control/ordered': () => Response.json(ordered),
  },
  fetch: () => new Response(null, { status: 404 }),
});
console.log(server.url.origin);
await Bun.stdin.bytes();
process.exit(0);
