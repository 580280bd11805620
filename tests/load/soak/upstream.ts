/** The upstream that all scenarios use. Only the gateway is a process of its own. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { eventually } from '../../support/eventually.ts';
import { audioFor, halvesFor, MODELS, SMALL_TRACK, slowPieces } from './content.ts';
import { RotatingSessions } from './rotating-sessions.ts';

export interface UpstreamOptions {
  readonly tracks: readonly Blob[];
  /** How often an access token can be used; 0: without end. */
  readonly usesPerToken: number;
  /** How long it leaves a silent connection open, one with a waiting call too. */
  readonly idleSeconds: number;
}

const AUDIO = { 'content-type': 'audio/mpeg', 'x-generation-id': 'generation-1' };
const Generation = Type.Object({ prompt: Type.String() });
const Refresh = Type.Object({ refresh_token: Type.String() });

export class Upstream implements AsyncDisposable {
  readonly url: string;
  readonly sessions: RotatingSessions;
  /** Calls to what it does not serve. */
  unexpected = 0;
  /** Calls that have had to wait for the release, released ones too. */
  #held = 0;
  readonly #released = Promise.withResolvers<void>();
  readonly #server: Bun.Server<undefined>;

  constructor({ tracks, usesPerToken, idleSeconds }: UpstreamOptions) {
    this.sessions = new RotatingSessions(usesPerToken);
    this.#server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      idleTimeout: idleSeconds,
      routes: {
        '/v1/me': this.#signedIn((_request, _id, user) => Response.json({ user })),
        '/v1/models': this.#signedIn(
          () => new Response(MODELS, { headers: { 'content-type': 'application/json' } }),
        ),
        '/v1/music': { POST: this.#signedIn((request) => this.#generate(request)) },
        '/v1/auth/refresh': {
          POST: async (request) =>
            this.sessions.refresh(Value.Parse(Refresh, await request.json()).refresh_token),
        },
        '/v1/music/creations/:id': {
          PATCH: this.#signedIn(async (request, id) => Response.json({ id, set: await request.json() })),
        },
        '/v1/music/creations/:id/content': this.#signedIn((_, id) => new Response(tracks[Number(id)])),
        '/v1/music/ranged/:id/content': this.#signedIn((request, id) => rangeOf(request, tracks[Number(id)])),
        '/v1/music/small/content': this.#signedIn((request) => rangeOf(request, SMALL_TRACK)),
        '/v1/music/held/:id/content': this.#signedIn((_, id) => this.#heldTrack(id)),
        '/v1/unavailable': this.#signedIn(() =>
          Response.json({ error: { message: 'later' } }, { status: 503 }),
        ),
        // Until the gateway gives it up.
        '/v1/unanswered': (request, server) => {
          server.timeout(request, 0);
          return new Promise<Response>(() => {});
        },
        '/v1/music/public/:id': (request) => Response.json({ public: request.params.id }),
        '/v1/music/public/:id/content': (request) => new Response(audioFor(request.params.id)),
      },
      fetch: () => {
        this.unexpected++;
        return new Response(null, { status: 599 });
      },
    });
    this.url = this.#server.url.origin;
  }

  /** Resolves when so many calls have had to wait. */
  async holds(count: number): Promise<void> {
    await eventually(() => this.#held >= count, `${count} waiting calls`, 120_000);
  }

  /** Responds to all calls that wait, now and later. */
  release(): void {
    this.#released.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  /** Requires a valid access token. */
  #signedIn(respond: (request: Bun.BunRequest, id: string, user: string) => Response | Promise<Response>) {
    return (request: Bun.BunRequest<string>) => {
      const user = this.sessions.userOf(request.headers.get('authorization'));
      if (user === undefined) return Response.json({ error: { message: 'expired' } }, { status: 401 });
      return respond(request, idOf(request), user);
    };
  }

  async #generate(request: Request): Promise<Response> {
    const { prompt } = Value.Parse(Generation, await request.json());
    if (prompt === 'refuse') return Response.json({ error: { message: 'no credits' } }, { status: 402 });
    const audio = audioFor(request.headers.get('idempotency-key') ?? '');
    if (prompt === 'in pieces') return twoPieces(audio.subarray(0, 2000), Bun.sleep(3), audio.subarray(2000));
    if (prompt === 'slowly') return slowly(request.headers.get('idempotency-key') ?? '');
    if (prompt === 'hold') await this.#hold();
    return new Response(audio, { headers: AUDIO });
  }

  #hold(): Promise<void> {
    this.#held++;
    return this.#released.promise;
  }

  #heldTrack(id: string): Response {
    const [first, second] = halvesFor(id);
    return twoPieces(first, this.#hold(), second);
  }
}

function idOf({ params }: { readonly params: Readonly<Record<string, string>> }): string {
  return params['id'] ?? '';
}

function twoPieces(first: Buffer, pause: Promise<void>, second: Buffer): Response {
  const pieces = async function* () {
    yield first;
    await pause;
    yield second;
  };
  return new Response(pieces(), { headers: AUDIO });
}

/** In pieces, 100 ms apart. */
function slowly(key: string): Response {
  const pieces = async function* () {
    for (const piece of slowPieces(key)) {
      yield piece;
      await Bun.sleep(100);
    }
  };
  return new Response(pieces(), { headers: AUDIO });
}

function rangeOf(request: Request, track: Blob | Buffer = SMALL_TRACK): Response {
  const size = track instanceof Blob ? track.size : track.length;
  const [, first, asked] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get('range') ?? '') ?? [];
  const last = Math.min(asked ? Number(asked) : size - 1, size - 1);
  const etag = `"${size}"`;
  return new Response(track.slice(Number(first), last + 1), {
    status: 206,
    headers: { ...AUDIO, etag, 'content-range': `bytes ${first}-${last}/${size}` },
  });
}
