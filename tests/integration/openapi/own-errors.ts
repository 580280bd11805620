/** Brings an operation to each error that the gateway itself answers with. */

import { jest } from 'bun:test';
import type { Pool } from '../../../src/gateway/http/admission/pool.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { ORIGIN, REFRESH_ONLY, type RequestOptions, SIGNED_IN, type World } from '../../support/world.ts';
import type { Call } from './calls.ts';

const TWO_MB = 2 * 1024 * 1024;

export function request(
  world: World,
  call: Call,
  options: RequestOptions = {},
  path = call.path,
): Promise<Response> {
  const cookie = call.hasSession ? { cookie: SIGNED_IN } : {};
  return world.request(path, { ...cookie, ...call.options, ...options });
}

export async function raw(world: World, call: Call, head: string, body = ''): Promise<Response> {
  const [method] = call.operation.split(' ');
  const start = `${method} ${call.path} ${head}\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\nConnection: close\r\n`;
  const answer = await rawRequest(world.port, `${start}\r\n${body}`);
  return new Response(answer.body || null, { status: answer.status, headers: answer.headers });
}

/** With a query, public playback needs a session like any other call. */
function sessionPath(call: Call): string {
  return call.hasSession ? call.path : `${call.path}?x=1`;
}

function withOneOfTheSessionInFlight(world: World, call: Call): Promise<Response> {
  world.admission.perSession.enter({ accessToken: 'access-1', refreshToken: 'refresh-1' });
  return request(world, call, { cookie: SIGNED_IN }, sessionPath(call));
}

function takeAll(pool: Pool): void {
  while (pool.inUse < pool.limit) pool.take();
}

export function withEveryPlaceTaken(world: World, call: Call): Promise<Response> {
  const { identityProvider, sessions, reads, streams, streamedBodies } = world.admission;
  for (const pool of [identityProvider, sessions, reads, streams, streamedBodies]) takeAll(pool);
  return request(world, call);
}

/** The access token has expired, or the browser has none any more. */
export function withNoPlaceForARefresh(world: World, call: Call, cookie: string): Promise<Response> {
  takeAll(world.admission.sessions);
  return request(world, call, { cookie });
}

/** Lets 25 s pass again and again until the gateway, which waits for the rest of the body, has answered. */
async function withStalledBody(world: World, call: Call): Promise<Response> {
  jest.useFakeTimers();
  try {
    let hasEnded = false;
    const answer = raw(world, call, 'HTTP/1.1\r\nHost: x\r\nContent-Length: 100', '{').finally(() => {
      hasEnded = true;
    });
    while (!hasEnded) {
      jest.advanceTimersByTime(25_000);
      await new Promise(setImmediate);
    }
    return await answer;
  } finally {
    jest.useRealTimers();
  }
}

function withoutPermission(world: World, call: Call): Promise<Response> {
  world.upstream
    .on('POST /oauth/token', () => Response.json({}))
    .on('POST /v1/auth/refresh', () => new Response('', { status: 400 }));
  // The session check is at peace with having no session, but not with one that has ended.
  const cookie = call.path === '/api/auth/session' ? REFRESH_ONLY : '';
  return request(world, call, { cookie }, sessionPath(call));
}

export const RETRY_LATER = {
  'retry-after': '5',
  'proxy-status': 'music-gateway; error=connection_limit_reached',
};
const UNREACHABLE = { UPSTREAM_URL: 'http://127.0.0.1:1', IDP_URL: 'http://127.0.0.1:1' };

interface OwnError {
  readonly what: string;
  readonly environment?: Environment;
  /** What it has, and the upstream's response with the same status has not. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly send: (world: World, call: Call) => Promise<Response>;
}

/** How any operation that documents one is brought to it. */
export const OWN_ERRORS: Readonly<Record<string, OwnError>> = {
  400: { what: 'without a host', send: (world, call) => raw(world, call, 'HTTP/1.0') },
  401: { what: 'without a session or a token', send: withoutPermission },
  403: { what: 'without an Origin', send: (world, call) => request(world, call, { origin: null }) },
  404: {
    what: 'with a path that can be read in two ways',
    send: (world, call) => request(world, call, {}, call.path.replace(/(abc|1)/, 'a%2fb')),
  },
  408: {
    what: 'with a body that stops arriving',
    headers: { connection: 'close' },
    send: withStalledBody,
  },
  413: {
    what: 'with a body over 2 MB',
    send: (world, call) => request(world, call, { body: '{'.padEnd(TWO_MB + 1) }),
  },
  429: {
    what: 'with one request of the session in flight, and no place for another',
    environment: { MAX_IN_FLIGHT_PER_SESSION: '1' },
    headers: RETRY_LATER,
    send: withOneOfTheSessionInFlight,
  },
  502: { what: 'when nobody is there', environment: UNREACHABLE, send: request },
  503: { what: 'with every place taken', headers: RETRY_LATER, send: withEveryPlaceTaken },
};
