/** A request that succeeds, for each operation of the OpenAPI document. */

import { rawRequest } from '../../support/raw-http.ts';
import { ORIGIN, type RequestOptions, SIGNED_IN, type World } from '../../support/world.ts';
import type { DocumentedOperation } from './document.ts';

export const TRACK = { model: 'm', prompt: 'p', music_length_ms: 3000 };
export const GRANT = { code: 'c', code_verifier: 'v'.repeat(43) };
/** Sign-in reads a token pair, a refresh too, and the other calls relay it. */
export const PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };

export type Call = ReturnType<typeof callOf>;

/** The upstream's path and the JSON body of the gateway's own routes. */
const OWN_ROUTES: Readonly<Record<string, { upstream?: string; json?: unknown }>> = {
  '/api/health': {},
  '/api/auth/idp': { upstream: '/v1/auth/idp', json: GRANT },
  '/api/auth/session': { upstream: '/v1/me' },
  '/api/auth/logout': { upstream: '/v1/auth/logout' },
  '/api/music/models': { upstream: '/v1/models' },
  '/api/music/generate': { upstream: '/v1/music', json: TRACK },
};

/** @param operation such as `GET /api/health`, as in the document */
export function callOf(operation: string, { responses }: DocumentedOperation) {
  const [method = '', template = ''] = operation.split(' ');
  const path = template.replace('{rest}', 'library/1').replace('{creation_id}', 'abc');
  const isProxied = path.startsWith('/api/upstream');
  const isPlayback = path.includes('/public/');
  const isSignOut = path === '/api/auth/logout';
  const own = OWN_ROUTES[path];
  const upstreamPath = isProxied ? path.replace('/api/upstream', '') : own?.upstream;
  // Session check and models send GET for HEAD too.
  const upstreamMethod = isProxied || method === 'POST' ? method : 'GET';
  const isRead = method === 'GET' || method === 'HEAD';
  return {
    operation,
    method,
    path,
    documented: Object.keys(responses),
    json: own?.json ?? (isProxied && !isRead ? {} : undefined),
    /** The call to the upstream that decides the response; none for what the gateway responds by itself. */
    upstream: upstreamPath && `${upstreamMethod} ${upstreamPath}`,
    isSignOut,
    isProxied,
    isPlayback,
    /** Whether it is made with the session's tokens. */
    hasSession: path !== '/api/health' && path !== '/api/auth/idp' && !isSignOut && !isPlayback,
    hasBody: !isRead && !isSignOut,
    /** Whether the upstream's own body is passed on, an error's too. */
    relays: isProxied || (isRead && path !== '/api/health'),
  };
}

export function request(
  world: World,
  call: Call,
  options: RequestOptions = {},
  path = call.path,
): Promise<Response> {
  const body = call.json === undefined ? {} : { json: call.json };
  const cookie = call.hasSession ? { cookie: SIGNED_IN } : {};
  return world.request(path, { ...cookie, ...body, method: call.method, ...options });
}

export async function raw(world: World, { method, path }: Call, head: string, body = ''): Promise<Response> {
  const start = `${method} ${path} ${head}\r\nOrigin: ${ORIGIN}\r\nCookie: ${SIGNED_IN}\r\nConnection: close\r\n`;
  const response = await rawRequest(world.port, `${start}\r\n${body}`);
  return new Response(response.body || null, { status: response.status, headers: response.headers });
}

/** The response that follows from the upstream's to the call, and to a refresh if one is needed. */
export function whenUpstream(
  world: World,
  call: Call,
  respond: () => Response,
  { refreshed = (): Response | Promise<Response> => Response.json(PAIR) } = {},
): Promise<Response> {
  world.upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
    .on('POST /v1/auth/refresh', refreshed);
  if (call.upstream) world.upstream.on(call.upstream, respond);
  return request(world, call);
}
