/** Brings every operation of the OpenAPI document to each response that it can have. */

import { jest } from 'bun:test';
import type { Budget } from '../../../src/gateway/http/admission/budget.ts';
import { fill, TRACK } from '../../support/long-calls.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { SIGN_IN } from '../../support/routes.ts';
import { ORIGIN, type RequestOptions, type World } from '../../support/world.ts';

const MAX_BODY_BYTES = 2 * 1024 * 1024;
const PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };
const RETRY_LATER = {
  'retry-after': '5',
  'proxy-status': 'music-gateway; error=connection_limit_reached',
};
const STEP_UP = { 'www-authenticate': 'Bearer error="insufficient_user_authentication", max_age="300"' };
const LIMITS = { 'retry-after': '9', ratelimit: 'x', 'x-ratelimit-limit': '1' };

/** The upstream's path and the JSON body of the gateway's own routes. */
const OWN_ROUTES: Readonly<Record<string, { upstream?: string; json?: unknown }>> = {
  '/api/auth/idp': { upstream: '/v1/auth/idp', json: SIGN_IN },
  '/api/auth/session': { upstream: '/v1/me' },
  '/api/music/models': { upstream: '/v1/models' },
  '/api/music/generate': { upstream: '/v1/music', json: TRACK },
};

type Call = ReturnType<typeof callOf>;

/** A request that succeeds for an operation such as `GET /api/health`, with tokens that no other row has. */
function callOf(operation: string, id: string) {
  const [method = '', template = ''] = operation.split(' ');
  const path = template.replace('{rest}', 'library/1').replace('{creation_id}', 'abc');
  const isProxied = path.startsWith('/api/upstream');
  const isPublic = path.includes('/public/');
  const isRead = method === 'GET' || method === 'HEAD';
  const upstreamPath = isProxied ? path.replace('/api/upstream', '') : OWN_ROUTES[path]?.upstream;
  return {
    method,
    path,
    json: OWN_ROUTES[path]?.json ?? (isProxied && !isRead ? {} : undefined),
    access: `svc_music_access=a${id}`,
    refresh: `svc_music_refresh=r${id}`,
    isProxied,
    /** The call that decides the response; session check and models send GET for HEAD too. */
    upstream: upstreamPath && `${isProxied || method === 'POST' ? method : 'GET'} ${upstreamPath}`,
    /** Whether it is made with the session's tokens. */
    hasSession: upstreamPath !== undefined && path !== '/api/auth/idp' && !isPublic,
    /** Whether the upstream's own body is passed on, an error's too. */
    relays: isProxied || (isRead && upstreamPath !== undefined),
    /** Public playback needs a session as soon as there is a query. */
    sessionPath: isPublic ? `${path}?x=1` : path,
  };
}

function request(world: World, call: Call, options: RequestOptions = {}, path = call.path) {
  const { method, access, refresh, json, hasSession } = call;
  const body = json === undefined ? {} : { json };
  const cookie = hasSession ? { cookie: `${access}; ${refresh}` } : {};
  return world.request(path, { ...cookie, ...body, method, ...options });
}

async function raw({ port }: World, { method, path, access }: Call, head: string, body = '') {
  const lines = `Origin: ${ORIGIN}\r\nCookie: ${access}\r\nConnection: close\r\n\r\n`;
  const answer = await rawRequest(port, `${method} ${path} ${head}\r\n${lines}${body}`);
  return new Response(answer.body || null, { status: answer.status, headers: answer.headers });
}

/** The response that follows from the upstream's to the call, when a refresh succeeds. */
function whenUpstream(world: World, call: Call, respond: () => Response) {
  world.upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
    .on('POST /v1/auth/refresh', () => Response.json(PAIR));
  if (call.upstream) world.upstream.on(call.upstream, respond);
  return request(world, call);
}

function html(status: number, headers = {}): Response {
  return new Response('<p>', { status, headers: { 'content-type': 'text/html', ...headers } });
}

async function withFull(budgets: readonly Budget[], send: () => Promise<Response>): Promise<Response> {
  const taken = budgets.map((budget) => budget.limit - budget.inUse);
  for (const budget of budgets) fill(budget);
  const response = await send();
  for (const [index, budget] of budgets.entries()) budget.release(taken[index] ?? 0);
  return response;
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

type Situation = readonly [
  /** The key of the response in the document; `ok` for that of a success. */
  status: string,
  what: string,
  appliesTo: (call: Call) => unknown,
  send: (world: World, call: Call) => Promise<Response>,
  more?: {
    /** The error is the gateway's own even where the upstream's body is relayed. */
    readonly isOwn?: true;
    readonly headers?: Readonly<Record<string, string>>;
    /** Without a server at the addresses of the upstream and the identity provider. */
    readonly isLonely?: true;
  },
];

const isOwn = true;
const needsOrigin = ({ path }: Call) => path !== '/api/health';
const callsUpstream = ({ upstream }: Call) => upstream;
const reachesUpstreamAtOnce = ({ upstream, path }: Call) => upstream && path !== '/api/auth/idp';
const hasSession = (call: Call) => call.hasSession;
const isProxied = (call: Call) => call.isProxied;
const hasBody = ({ json }: Call) => json !== undefined;
const SITUATIONS: readonly Situation[] = [
  [
    'ok',
    'when all is well, after a refresh where there is a session',
    () => true,
    (world, call) => {
      const responses = call.hasSession ? [html(401)] : [];
      return whenUpstream(world, call, () => responses.pop() ?? Response.json(PAIR));
    },
  ],
  ['400', 'without a host', needsOrigin, (world, call) => raw(world, call, 'HTTP/1.0'), { isOwn }],
  [
    '401',
    'when the refresh is refused, or no token is issued',
    callsUpstream,
    (world, call) => {
      world.upstream.on('POST /oauth/token', () => Response.json({}));
      world.upstream.on('POST /v1/auth/refresh', () => new Response('', { status: 400 }));
      if (call.hasSession && call.upstream) world.upstream.on(call.upstream, () => html(401));
      return request(world, call, {}, call.sessionPath);
    },
    { isOwn },
  ],
  [
    '401',
    'when the upstream asks for another sign-in',
    reachesUpstreamAtOnce,
    (world, call) => whenUpstream(world, call, () => html(401, STEP_UP)),
    { headers: STEP_UP },
  ],
  [
    '401',
    'when there is no place for the refresh',
    hasSession,
    (world, call) => withFull([world.admission.sessions], () => whenUpstream(world, call, () => html(401))),
    { headers: RETRY_LATER },
  ],
  [
    '403',
    'without an Origin',
    needsOrigin,
    (world, call) => request(world, call, { origin: null }),
    { isOwn },
  ],
  [
    '404',
    'with a path that can be read in two ways',
    isProxied,
    (world, call) => request(world, call, {}, call.path.replace(/[^/]*$/, 'a%2fb')),
    { isOwn },
  ],
  [
    '408',
    'with a body that stops arriving',
    hasBody,
    withStalledBody,
    { isOwn, headers: { connection: 'close' } },
  ],
  [
    '413',
    'with a body over 2 MB',
    hasBody,
    (world, call) => request(world, call, { body: '{'.padEnd(MAX_BODY_BYTES + 1) }),
    { isOwn },
  ],
  [
    '429',
    'with as many requests of the session in flight as there may be',
    reachesUpstreamAtOnce,
    (world, call) => {
      const token = call.access.replace(/^.*=/, '');
      for (let sent = 0; sent < 100; sent++)
        world.admission.perSession.join(token, { isGeneration: false, bodyBytes: 0 });
      return request(world, call, { cookie: call.access }, call.sessionPath);
    },
    { isOwn, headers: RETRY_LATER },
  ],
  ['502', 'when no server is there', callsUpstream, request, { isOwn, isLonely: true }],
  [
    '503',
    'with every place taken',
    callsUpstream,
    (world, call) => {
      const { identityProvider, sessions, reads, streams } = world.admission;
      return withFull([identityProvider, sessions, reads, streams], () => request(world, call));
    },
    { isOwn, headers: RETRY_LATER },
  ],
  [
    'default',
    'when the upstream says 418',
    callsUpstream,
    (world, call) => whenUpstream(world, call, () => html(418, LIMITS)),
  ],
];

/** Every situation of every operation, with the key that its response has in the document. */
export function rowsOf(operations: Iterable<string>) {
  return [...operations].flatMap((operation, index) =>
    SITUATIONS.flatMap(([key, what, appliesTo, send, more = {}], at) => {
      const call = callOf(operation, `${index}-${at}`);
      if (!appliesTo(call)) return [];
      const status = key === 'ok' ? (call.isProxied ? '2XX' : '200') : key;
      const hasEnvelope = key !== 'ok' && (more.isOwn === true || !call.relays);
      const { headers = {}, isLonely = false } = more;
      return {
        operation,
        what,
        status,
        hasEnvelope,
        headers,
        isLonely,
        send: (world: World) => send(world, call),
      };
    }),
  );
}
