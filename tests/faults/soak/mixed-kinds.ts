/** The kinds of request that a studio's users and others send, and what must come of each. */

import { ORIGIN } from '../../support/world.ts';
import type { Answer, ClientRequest } from './connection.ts';
import { audioFor, MODELS, SMALL_TRACK_BYTES, smallTrack } from './content.ts';
import type { Random } from './random.ts';
import { cookies } from './rotating-sessions.ts';

export interface Planned {
  readonly request: ClientRequest;
  readonly status: number;
  /** Whether the body is the right one. */
  readonly isRight: (answer: Answer) => boolean;
  /** The upstream will not answer, so the client has to give up. */
  readonly isUnanswered?: true;
}

/** The user is signed in with these cookies. */
export interface Sender {
  readonly user: string;
  readonly cookie: string;
}

type Kind = (random: Random, sender: Sender) => Planned;

const PROXY = '/api/upstream/v1';
const small = smallTrack();

const health: Kind = () => ({
  request: { method: 'GET', path: '/api/health' },
  status: 200,
  isRight: bodyIs('{"service":"music-gateway","status":"ok"}'),
});

const sessionCheck: Kind = (_, sender) => ({
  request: signedIn(sender, 'GET', '/api/auth/session'),
  status: 200,
  isRight: bodyIs(JSON.stringify({ user: sender.user })),
});

const noSession: Kind = () => ({
  request: { method: 'GET', path: '/api/auth/session', headers: { origin: ORIGIN } },
  status: 200,
  isRight: bodyIs('{"authenticated":false}'),
});

const models: Kind = (_, sender) => ({
  request: signedIn(sender, 'GET', '/api/music/models'),
  status: 200,
  isRight: bodyIs(MODELS),
});

function generation(prompt: string): Kind {
  return (random, sender) => {
    const key = `key-${random.below(1e9)}`;
    const json = { model: 'composer-1', prompt, music_length_ms: 30_000 };
    const request = signedIn(sender, 'POST', '/api/music/generate', json, { 'idempotency-key': key });
    if (prompt === 'refuse') return { request, status: 402, isRight: bodyIs(envelope('no credits')) };
    return { request, status: 200, isRight: ({ body }) => body.equals(audioFor(key)) };
  };
}

const creation: Kind = (random, sender) => {
  const id = String(random.below(1000));
  return {
    request: signedIn(sender, 'GET', `${PROXY}/music/creations/${id}`),
    status: 200,
    isRight: bodyIs(JSON.stringify({ id })),
  };
};

const publish: Kind = (random, sender) => {
  const [id, set] = [String(random.below(1000)), { is_public: random.below(2) === 1 }];
  return {
    request: signedIn(sender, 'PATCH', `${PROXY}/music/creations/${id}`, set),
    status: 200,
    isRight: bodyIs(JSON.stringify({ id, set })),
  };
};

const range: Kind = (random, sender) => {
  const first = random.below(SMALL_TRACK_BYTES);
  const last = first + random.below(SMALL_TRACK_BYTES - first);
  return {
    request: signedIn(sender, 'GET', `${PROXY}/music/small/content`, undefined, {
      range: `bytes=${first}-${last}`,
    }),
    status: 206,
    isRight: ({ headers, body }) =>
      headers.get('content-range') === `bytes ${first}-${last}/${SMALL_TRACK_BYTES}` &&
      body.equals(small.subarray(first, last + 1)),
  };
};

const publicCreation: Kind = (random) => {
  const id = `id-${random.below(1000)}`;
  return {
    request: { method: 'GET', path: `${PROXY}/music/public/${id}`, headers: { origin: ORIGIN } },
    status: 200,
    isRight: bodyIs(JSON.stringify({ public: id })),
  };
};

const publicContent: Kind = (random) => {
  const id = `id-${random.below(1000)}`;
  return {
    request: { method: 'GET', path: `${PROXY}/music/public/${id}/content`, headers: { origin: ORIGIN } },
    status: 200,
    isRight: ({ body }) => body.equals(audioFor(id)),
  };
};

const refusedOrigin: Kind = (random, { cookie }) => ({
  request: {
    method: 'GET',
    path: '/api/music/models',
    headers: random.below(2) ? { cookie, origin: 'http://elsewhere.test' } : { cookie },
  },
  status: 403,
  isRight: isEnvelope,
});

const badJson: Kind = (_, sender) => {
  const request = signedIn(sender, 'POST', '/api/music/generate', {});
  return { request: { ...request, body: '{"model": "m", ' }, status: 400, isRight: isEnvelope };
};

/** A session that the upstream does not know (any more): the refresh is refused and the cookies are cleared. */
const endedSession: Kind = (random, { user }) => {
  const unknown = `x${random.below(1e9)}`;
  return {
    request: signedIn({ user, cookie: cookies(unknown, unknown) }, 'GET', '/api/music/models'),
    status: 401,
    isRight: (answer) => isEnvelope(answer) && answer.headers.getSetCookie().length === 2,
  };
};

const unavailable: Kind = (_, sender) => ({
  request: signedIn(sender, 'GET', `${PROXY}/unavailable`),
  status: 503,
  isRight: bodyIs(envelope('later')),
});

const unanswered: Kind = (_, sender) => ({
  request: signedIn(sender, 'GET', `${PROXY}/unanswered`),
  status: 200,
  isRight: () => false,
  isUnanswered: true,
});

const outside: Kind = (_, sender) => ({
  request: signedIn(sender, 'GET', '/api/upstream/v2/models'),
  status: 404,
  isRight: isEnvelope,
});

/** As often as they are named. */
const KINDS: readonly [Kind, ...Kind[]] = [
  health,
  ...[sessionCheck, sessionCheck, sessionCheck, sessionCheck],
  noSession,
  ...[models, models],
  ...[generation('at once'), generation('in pieces'), generation('refuse')],
  ...[creation, creation, creation],
  ...[publish, publish],
  ...[range, range],
  ...[publicCreation, publicContent],
  ...[refusedOrigin, badJson, endedSession, unavailable, unanswered, outside],
];

export function plan(random: Random, sender: Sender): Planned {
  return random.pick(KINDS)(random, sender);
}

function signedIn(
  { cookie }: Sender,
  method: string,
  path: string,
  json?: unknown,
  headers: Readonly<Record<string, string>> = {},
): ClientRequest {
  const contentType = json === undefined ? {} : { 'content-type': 'application/json' };
  const body = json === undefined ? {} : { body: JSON.stringify(json) };
  return { method, path, headers: { origin: ORIGIN, cookie, ...contentType, ...headers }, ...body };
}

function bodyIs(text: string): Planned['isRight'] {
  return ({ body }) => body.toString() === text;
}

function isEnvelope({ body }: Answer): boolean {
  return body.toString().startsWith('{"error":{"message":"');
}

function envelope(message: string): string {
  return JSON.stringify({ error: { message } });
}
