/**
 * The upstream and identity provider of a gateway under load, a process of its own: `upstream.ts <bytes of a track>`. It
 * prints its address, and ends with its stdin.
 */

import { createCipheriv } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

export const TRACKS = 4;
const BLOCK_BYTES = 1024 * 1024;
/** How long it takes to sign a session out. */
const LOGOUT_MS = 250;
/** Longer than 150 orders need to arrive. */
const REPLAY_MS = 1000;
/** Between two pieces. A generation streams for a second, so few of those that users pay for are in flight at once. */
const PIECE_MS = 25;
const Order = Type.Object({ prompt: Type.String() });
const SignOut = Type.Object({ refresh_token: Type.String() });

/** The parts of a body that waits in the middle. */
export function halvesFor(id: string): Buffer[] {
  return ['first', 'second'].map((half) => Buffer.alloc(200_000, `${half} of ${id}; `));
}

/** What is sent of a generation that takes a second. */
export function piecesFor(key: string): Buffer[] {
  return Array.from({ length: 40 }, (_, piece) => Buffer.alloc(10_000, `${key}, piece ${piece}; `));
}

export function sha256(...pieces: readonly Uint8Array[]): string {
  const hash = new Bun.CryptoHasher('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}

/** Several different tracks, so that bytes that reach the wrong reader are noticed. */
export function tracksOf(bytes: number): Buffer[] {
  return Array.from({ length: TRACKS }, (_, index) => seeded(`track ${index}`, bytes));
}

function serve(trackBytes: number) {
  const tracks = tracksOf(trackBytes).map((track) => new Blob([track]));
  const state = { held: 0, refreshes: 0, signedOut: [] as string[] };
  const released = Promise.withResolvers<void>();
  const hold = () => {
    state.held++;
    return released.promise;
  };
  const track = (id = '0') => tracks[Number(id) % TRACKS];
  const whole = () => new Response(track());
  const inHalves = async function* (id: string) {
    for (const half of halvesFor(id)) {
      yield half;
      await hold();
    }
  };
  const generate = async (request: Request): Promise<Response> => {
    const key = request.headers.get('idempotency-key') ?? '';
    const { prompt } = Value.Parse(Order, await request.json());
    if (prompt === 'never') return never();
    if (prompt === 'replayed') return Bun.sleep(REPLAY_MS).then(whole);
    if (prompt === 'hold') await hold();
    return new Response(slowly(key, prompt === 'paid' ? PIECE_MS : 0));
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
      '/v1/me': ({ headers }) => {
        const token = headers.get('authorization');
        return Response.json({ token }, { status: token === 'Bearer expired' ? 401 : 200 });
      },
      // The longest pairs that fit into cookies.
      '/v1/auth/refresh': () => {
        const access_token = `${++state.refreshes}-${'x'.repeat(3500)}`;
        return Response.json({ access_token, refresh_token: `r-${state.refreshes}` });
      },
      '/v1/auth/logout': async (request) => {
        state.signedOut.push(Value.Parse(SignOut, await request.json()).refresh_token);
        await Bun.sleep(LOGOUT_MS);
        return new Response(null, { status: 204 });
      },
      '/v1/music': generate,
      '/v1/music/creations/:id/content': ({ params }) => new Response(track(params.id)),
      '/v1/music/ranged/:id/content': (request) => rangeOf(request, track(request.params.id)),
      '/v1/music/held/:id/content': ({ params }) => new Response(inHalves(params.id)),
      '/v1/music/public/:id': whole,
      '/v1/music/public/:id/content': whole,
      '/v1/export': whole,
      '/oauth/token': () => never(),
    },
    fetch: () => new Response(null, { status: 404 }),
  });
}

/** Blocks of an AES key stream, which never repeat. */
function seeded(seed: string, bytes: number): Buffer {
  const key = new Bun.CryptoHasher('sha256').update(seed).digest();
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  const blocks: Buffer[] = [];
  for (let left = bytes; left > 0; left -= BLOCK_BYTES)
    blocks.push(cipher.update(Buffer.alloc(Math.min(left, BLOCK_BYTES))));
  return Buffer.concat(blocks);
}

function never(): Promise<Response> {
  return new Promise(() => {});
}

async function* slowly(key: string, pieceMs: number) {
  for (const piece of piecesFor(key)) {
    if (pieceMs > 0) await Bun.sleep(pieceMs);
    yield piece;
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
