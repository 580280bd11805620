/** The kinds of request that users of a studio and others send, and the response that each must get. */

import fc from 'fast-check';
import type { ParsedResponse } from '../../support/raw-http.ts';
import { ORIGIN } from '../../support/world.ts';
import { audioFor, MODELS, SMALL_TRACK } from './content.ts';
import { type ClientRequest, generation, PROXY, signedIn } from './requests.ts';
import { cookies } from './rotating-sessions.ts';

export interface Planned {
  readonly request: ClientRequest;
  readonly status: number;
  readonly isRight: (response: ParsedResponse) => boolean;
}

/** @param number chosen at random */
type Kind = (number: number, cookie: string, user: string) => Planned;

/** The upstream never responds, so the client has to give up. */
export const NEVER = `${PROXY}/unanswered`;

const get = (status: number, path: string, expected: Expected): Kind => {
  return (_, cookie) => planned(status, signedIn(cookie, 'GET', path), expected);
};
const stranger = (status: number, path: string, expected: Expected, origin = ORIGIN): Planned =>
  planned(status, { method: 'GET', path, headers: { origin } }, expected);

const generate = (prompt: string): Kind => {
  return (number, cookie) => {
    const key = `key-${number}`;
    const request = generation(cookie, prompt, key);
    return prompt === 'refuse'
      ? planned(402, request, envelope('no credits'))
      : planned(200, request, audioFor(key));
  };
};

const range: Kind = (number, cookie) => {
  const first = number % SMALL_TRACK.length;
  const last = first + (number % (SMALL_TRACK.length - first));
  const headers = { range: `bytes=${first}-${last}` };
  const request = signedIn(cookie, 'GET', `${PROXY}/music/small/content`, undefined, headers);
  return planned(
    206,
    request,
    (response) =>
      headerOf(response, 'content-range')[0] === `bytes ${first}-${last}/${SMALL_TRACK.length}` &&
      response.body === SMALL_TRACK.toString('latin1', first, last + 1),
  );
};

const publish: Kind = (number, cookie) => {
  const id = String(number % 1000);
  const set = { is_public: number % 2 === 1 };
  const request = signedIn(cookie, 'PATCH', `${PROXY}/music/creations/${id}`, set);
  return planned(200, request, JSON.stringify({ id, set }));
};

/** The upstream does not know the session, so the refresh is refused and the cookies are cleared. */
const endedSession: Kind = (number) => {
  const request = signedIn(cookies(`x${number}`, `x${number}`), 'GET', '/api/music/models');
  return planned(
    401,
    request,
    (response) => isEnvelope(response) && headerOf(response, 'set-cookie').length === 2,
  );
};

const malformed: Kind = (_, cookie) => {
  const request = signedIn(cookie, 'POST', '/api/music/generate', {});
  return planned(400, { ...request, body: '{"model": "m", ' }, isEnvelope);
};

const sessionCheck: Kind = (_, cookie, user) =>
  planned(200, signedIn(cookie, 'GET', '/api/auth/session'), JSON.stringify({ user }));

/** Each with how often it is chosen. */
const KINDS: readonly (readonly [weight: number, kind: Kind])[] = [
  [1, () => stranger(200, '/api/health', '{"service":"music-gateway","status":"ok"}')],
  [1, () => stranger(200, '/api/auth/session', '{"authenticated":false}')],
  [1, (number) => stranger(200, `${PROXY}/music/public/${number}`, JSON.stringify({ public: `${number}` }))],
  [1, (number) => stranger(200, `${PROXY}/music/public/${number}/content`, audioFor(`${number}`))],
  [1, () => stranger(403, '/api/music/models', isEnvelope, 'http://elsewhere.test')],
  [4, sessionCheck],
  [2, get(200, '/api/music/models', MODELS)],
  ...(['at once', 'in pieces', 'refuse'] as const).map((prompt) => [1, generate(prompt)] as const),
  [4, publish],
  [3, range],
  [1, malformed],
  [1, endedSession],
  [1, get(503, `${PROXY}/unavailable`, envelope('later'))],
  [1, get(200, NEVER, () => false)],
  [1, get(404, '/api/upstream/v2/models', isEnvelope)],
];

export const mixedKind = fc.oneof(
  ...KINDS.map(([weight, kind]) => ({ weight, arbitrary: fc.constant(kind) })),
);

type Expected = string | Buffer | Planned['isRight'];

export function headerOf({ headers }: ParsedResponse, name: string): string[] {
  return headers.filter(([each]) => each === name).map(([, value]) => value);
}

function planned(status: number, request: ClientRequest, expected: Expected): Planned {
  if (typeof expected === 'function') return { status, request, isRight: expected };
  return { status, request, isRight: ({ body }) => body === expected.toString('latin1') };
}

function isEnvelope({ body }: ParsedResponse): boolean {
  return body.startsWith('{"error":{"message":"');
}

function envelope(message: string): string {
  return JSON.stringify({ error: { message } });
}
