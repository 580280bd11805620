/** Every route that calls another server, with a request that it accepts. */

import { messages } from '../../src/gateway/http/messages.ts';
import { ACCESS_ONLY, type RequestOptions, type World } from './world.ts';

export interface RouteCase {
  readonly name: string;
  readonly path: string;
  readonly options: RequestOptions;
  /** What the upstream and the identity provider receive for it. */
  readonly calls: readonly string[];
  readonly credentials: 'Bearer access-1' | null;
  /** The setting with the deadline of its first call, and the texts for its failures. */
  readonly deadline: string;
  readonly late: string;
  readonly unreachable: string;
}

export const TRACK = { model: 'music-1', prompt: 'a calm taarab tune', music_length_ms: 30_000 };
const SIGN_IN = { code: 'secret-code', code_verifier: 'v'.repeat(43) };
export const PROXIED_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
export const PROXIED_PATH = '/api/upstream/v1/library';

const OF_THE_UPSTREAM = {
  credentials: 'Bearer access-1',
  late: messages.en.upstreamTimeout,
  unreachable: messages.en.upstreamUnreachable,
} as const;
const READ = { ...OF_THE_UPSTREAM, options: { cookie: ACCESS_ONLY }, deadline: 'TIMEOUT_READ_MS' };
const STREAM = { ...OF_THE_UPSTREAM, deadline: 'TIMEOUT_STREAM_MS' };

export const SIGN_IN_ROUTE: RouteCase = {
  name: 'sign-in',
  path: '/api/auth/idp',
  options: { json: SIGN_IN },
  calls: ['POST /oauth/token', 'POST /v1/auth/idp'],
  credentials: null,
  deadline: 'TIMEOUT_SIGN_IN_MS',
  late: messages.en.identityProviderTimeout,
  unreachable: messages.en.identityProviderUnreachable,
};
export const GENERATE: RouteCase = {
  ...STREAM,
  name: 'generate',
  path: '/api/music/generate',
  options: { cookie: ACCESS_ONLY, json: TRACK },
  calls: ['POST /v1/music'],
  late: messages.en.generationTimeout,
};
/** A generation of the upstream's own form, by the proxy. */
export const OWN_FORM: RouteCase = {
  ...GENERATE,
  name: 'generate in its own form',
  path: '/api/upstream/v1/music?form=own',
  options: { cookie: ACCESS_ONLY, json: { lyrics: 'Rain, rain', seed: 7 } },
  calls: ['POST /v1/music?form=own'],
};
/** Both are relayed from memory. */
export const BUFFERED: readonly RouteCase[] = [
  { ...READ, name: 'session check', path: '/api/auth/session', calls: ['GET /v1/me'] },
  { ...READ, name: 'models', path: '/api/music/models', calls: ['GET /v1/models'] },
];
export const PUBLIC: RouteCase = {
  ...STREAM,
  name: 'public playback',
  path: '/api/upstream/v1/music/public/abc',
  options: {},
  calls: ['GET /v1/music/public/abc'],
  credentials: null,
};

export function proxied(method: string): RouteCase {
  const calls = [`${method} /v1/library`];
  const options = { method, cookie: ACCESS_ONLY };
  return { ...STREAM, name: `a proxied ${method}`, path: PROXIED_PATH, options, calls };
}

export const ROUTES = [
  SIGN_IN_ROUTE,
  ...BUFFERED,
  GENERATE,
  OWN_FORM,
  ...PROXIED_METHODS.map(proxied),
  PUBLIC,
];

/** Scripts a success for every route. */
export function scriptRoutes({ upstream }: World): void {
  const respond = () => new Response('ok');
  for (const { calls } of ROUTES) for (const call of calls) upstream.on(call, respond);
  upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
    .on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token: 'r' }))
    .on('POST /v1/auth/logout', respond);
}
