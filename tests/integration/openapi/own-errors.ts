/** The situations in which the gateway responds with an error of its own. */

import { jest } from 'bun:test';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { fill } from '../../support/long-calls.ts';
import { REFRESH_ONLY, SIGNED_IN, type World } from '../../support/world.ts';
import { type Call, raw, request, whenUpstream } from './calls.ts';

const TWO_MB = 2 * 1024 * 1024;
export const RETRY_LATER = {
  'retry-after': '5',
  'proxy-status': 'music-gateway; error=connection_limit_reached',
};

export interface Situation {
  readonly what: string;
  /** The key of the response in the document; that of a success without one. */
  readonly status?: string;
  readonly appliesTo: (call: Call) => boolean;
  /** Whether the gateway responds with an error of its own. */
  readonly isOwn: (call: Call) => boolean;
  readonly environment?: Environment;
  readonly headers?: Readonly<Record<string, string>>;
  readonly send: (world: World, call: Call) => Promise<Response>;
}

const asksForOrigin = ({ path }: Call) => path !== '/api/health';
export const dependsOnUpstream = ({ upstream, isSignOut }: Call) => upstream !== undefined && !isSignOut;
export const hasSession = (call: Call) => call.hasSession;
const hasBody = (call: Call) => call.hasBody;

/** Public playback needs a session as soon as there is a query. */
function sessionPath({ path, isPlayback }: Call): string {
  return isPlayback ? `${path}?x=1` : path;
}

export function withEveryPlaceTaken(world: World, call: Call): Promise<Response> {
  const { identityProvider, sessions, reads, streams } = world.admission;
  for (const pool of [identityProvider, sessions, reads, streams]) fill(pool);
  return request(world, call);
}

/** Lets 25 s pass again and again until the gateway, which waits for the rest of the body, has responded. */
async function withStalledBody(world: World, call: Call): Promise<Response> {
  jest.useFakeTimers();
  try {
    let hasEnded = false;
    const response = raw(world, call, 'HTTP/1.1\r\nHost: x\r\nContent-Length: 100', '{').finally(() => {
      hasEnded = true;
    });
    while (!hasEnded) {
      jest.advanceTimersByTime(25_000);
      await new Promise(setImmediate);
    }
    return await response;
  } finally {
    jest.useRealTimers();
  }
}

export const OWN_ERRORS: readonly Omit<Situation, 'isOwn'>[] = [
  {
    what: 'without a host',
    status: '400',
    appliesTo: asksForOrigin,
    send: (world, call) => raw(world, call, 'HTTP/1.0'),
  },
  {
    what: 'without a session or a token',
    status: '401',
    appliesTo: dependsOnUpstream,
    send: (world, call) => {
      world.upstream
        .on('POST /oauth/token', () => Response.json({}))
        .on('POST /v1/auth/refresh', () => new Response('', { status: 400 }));
      // The session check accepts that there is no session, but not that it has ended.
      const cookie = call.path === '/api/auth/session' ? REFRESH_ONLY : '';
      return request(world, call, { cookie }, sessionPath(call));
    },
  },
  {
    what: 'when the refresh is refused',
    status: '401',
    appliesTo: hasSession,
    send: (world, call) =>
      whenUpstream(world, call, () => new Response('', { status: 401 }), {
        refreshed: () => new Response('', { status: 400 }),
      }),
  },
  {
    what: 'without an Origin',
    status: '403',
    appliesTo: asksForOrigin,
    send: (world, call) => request(world, call, { origin: null }),
  },
  {
    what: 'with a path that can be read in two ways',
    status: '404',
    appliesTo: ({ isProxied }) => isProxied,
    send: (world, call) => request(world, call, {}, call.path.replace(/(abc|1)/, 'a%2fb')),
  },
  {
    what: 'with a body that stops arriving',
    status: '408',
    appliesTo: hasBody,
    headers: { connection: 'close' },
    send: withStalledBody,
  },
  {
    what: 'with a body over 2 MB',
    status: '413',
    appliesTo: hasBody,
    send: (world, call) => request(world, call, { body: '{'.padEnd(TWO_MB + 1) }),
  },
  {
    what: 'with one request of the session in flight, and no place for another',
    status: '429',
    appliesTo: (call) => call.hasSession || call.isPlayback,
    environment: { MAX_IN_FLIGHT_PER_SESSION: '1' },
    headers: RETRY_LATER,
    send: (world, call) => {
      world.admission.perSession.join('access-1', { isGeneration: false, bodyBytes: 0 });
      return request(world, call, { cookie: SIGNED_IN }, sessionPath(call));
    },
  },
  {
    what: 'when no server is there',
    status: '502',
    appliesTo: dependsOnUpstream,
    environment: { UPSTREAM_URL: 'http://127.0.0.1:1', IDP_URL: 'http://127.0.0.1:1' },
    send: request,
  },
  {
    what: 'when there is no place for the refresh, and no access token',
    status: '502',
    appliesTo: hasSession,
    headers: RETRY_LATER,
    send: (world, call) => {
      fill(world.admission.sessions);
      return request(world, call, { cookie: REFRESH_ONLY });
    },
  },
  {
    what: 'when there is no memory for the audio',
    status: '503',
    appliesTo: ({ path }) => path === '/api/music/generate',
    headers: { 'retry-after': '5', 'x-generation-id': 'g', 'x-music-creation-id': 'c' },
    send: (world, call) =>
      whenUpstream(world, call, () => {
        fill(world.admission.ledger);
        return new Response('audio', { headers: { 'x-generation-id': 'g', 'x-music-creation-id': 'c' } });
      }),
  },
  {
    what: 'with every place taken',
    status: '503',
    appliesTo: dependsOnUpstream,
    headers: RETRY_LATER,
    send: withEveryPlaceTaken,
  },
];
