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
const STEP_UP = 'Bearer error="insufficient_user_authentication", max_age="300"';
const LIMITS = { 'retry-after': '9', ratelimit: 'x', 'x-ratelimit-limit': '1' };
const IDS = { 'x-generation-id': 'g', 'x-music-creation-id': 'c' };

/** The upstream's path and the JSON body of the gateway's own routes. */
const OWN_ROUTES: Readonly<Record<string, { upstream?: string; json?: unknown }>> = {
  '/api/health': {},
  '/api/auth/idp': { upstream: '/v1/auth/idp', json: SIGN_IN },
  '/api/auth/session': { upstream: '/v1/me' },
  '/api/auth/logout': {},
  '/api/music/models': { upstream: '/v1/models' },
  '/api/music/generate': { upstream: '/v1/music', json: TRACK },
};

type Call = ReturnType<typeof callOf>;

/** A request that succeeds for an operation such as `GET /api/health`. */
function callOf(operation: string) {
  const [method = '', template = ''] = operation.split(' ');
  const path = template.replace('{rest}', 'library/1').replace('{creation_id}', 'abc');
  const isProxied = path.startsWith('/api/upstream');
  const isPublic = path.includes('/public/');
  const isRead = method === 'GET' || method === 'HEAD';
  const own = OWN_ROUTES[path];
  const upstreamPath = isProxied ? path.replace('/api/upstream', '') : own?.upstream;
  const json = own?.json ?? (isProxied && !isRead ? {} : undefined);
  return {
    method,
    path,
    json,
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

/** Sends the call in a world, with tokens that no other row has. */
interface Row {
  readonly call: Call;
  readonly world: World;
  readonly access: string;
  readonly refresh: string;
}

function request({ world, call, access, refresh }: Row, options: RequestOptions = {}, path = call.path) {
  const body = call.json === undefined ? {} : { json: call.json };
  const cookie = call.hasSession ? { cookie: `${access}; ${refresh}` } : {};
  return world.request(path, { ...cookie, ...body, method: call.method, ...options });
}

async function raw({ world, call, access }: Row, head: string, body = ''): Promise<Response> {
  const lines = `Origin: ${ORIGIN}\r\nCookie: ${access}\r\nConnection: close\r\n\r\n`;
  const answer = await rawRequest(world.port, `${call.method} ${call.path} ${head}\r\n${lines}${body}`);
  return new Response(answer.body || null, { status: answer.status, headers: answer.headers });
}

/** The response that follows from the upstream's to the call, and to a refresh. */
function whenUpstream(row: Row, respond: () => Response, refreshed = () => Response.json(PAIR)) {
  const { world, call } = row;
  world.upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
    .on('POST /v1/auth/refresh', refreshed);
  if (call.upstream) world.upstream.on(call.upstream, respond);
  return request(row);
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
async function withStalledBody(row: Row): Promise<Response> {
  jest.useFakeTimers();
  try {
    let hasEnded = false;
    const response = raw(row, 'HTTP/1.1\r\nHost: x\r\nContent-Length: 100', '{').finally(() => {
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

interface Situation {
  readonly what: string;
  /** The key of the response in the document; that of a success without one. */
  readonly status?: string;
  readonly appliesTo: (call: Call) => unknown;
  /** Whether the error is the gateway's own even where the upstream's body is relayed. */
  readonly isOwn?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly send: (row: Row) => Promise<Response>;
  /** Without a server at the addresses of the upstream and the identity provider. */
  readonly isLonely?: boolean;
}

const own = { isOwn: true };
const asksForOrigin = (call: Call) => call.path !== '/api/health';
const callsUpstream = (call: Call) => call.upstream;
const reachesUpstreamAtOnce = (call: Call) => call.upstream && call.path !== '/api/auth/idp';
const hasSession = (call: Call) => call.hasSession;
const hasBody = (call: Call) => call.json !== undefined;
const SITUATIONS: readonly Situation[] = [
  {
    what: 'when all is well, after a refresh where there is a session',
    appliesTo: () => true,
    send: (row) => {
      let isExpired = row.call.hasSession;
      return whenUpstream(row, () => {
        const response = isExpired ? html(401) : Response.json(PAIR);
        isExpired = false;
        return response;
      });
    },
  },
  {
    ...own,
    what: 'without a host',
    status: '400',
    appliesTo: asksForOrigin,
    send: (row) => raw(row, 'HTTP/1.0'),
  },
  {
    ...own,
    what: 'when the refresh is refused, or no token is issued',
    status: '401',
    appliesTo: callsUpstream,
    send: (row) => {
      const { call, world } = row;
      world.upstream.on('POST /oauth/token', () => Response.json({}));
      world.upstream.on('POST /v1/auth/refresh', () => new Response('', { status: 400 }));
      if (call.hasSession && call.upstream) world.upstream.on(call.upstream, () => html(401));
      return request(row, {}, call.sessionPath);
    },
  },
  {
    what: 'when the upstream asks for another sign-in',
    status: '401',
    appliesTo: reachesUpstreamAtOnce,
    headers: { 'www-authenticate': STEP_UP },
    send: (row) => whenUpstream(row, () => html(401, { 'www-authenticate': STEP_UP })),
  },
  {
    what: 'when there is no place for the refresh',
    status: '401',
    appliesTo: hasSession,
    headers: RETRY_LATER,
    send: (row) => withFull([row.world.admission.sessions], () => whenUpstream(row, () => html(401))),
  },
  {
    ...own,
    what: 'without an Origin',
    status: '403',
    appliesTo: asksForOrigin,
    send: (row) => request(row, { origin: null }),
  },
  {
    ...own,
    what: 'with a path that can be read in two ways',
    status: '404',
    appliesTo: (call) => call.isProxied,
    send: (row) => request(row, {}, `${row.call.path.replace(/[^/]*$/, '')}a%2fb`),
  },
  {
    ...own,
    what: 'with a body that stops arriving',
    status: '408',
    appliesTo: hasBody,
    headers: { connection: 'close' },
    send: withStalledBody,
  },
  {
    ...own,
    what: 'with a body over 2 MB',
    status: '413',
    appliesTo: hasBody,
    send: (row) => request(row, { body: '{'.padEnd(MAX_BODY_BYTES + 1) }),
  },
  {
    ...own,
    what: 'with as many requests of the session in flight as there may be',
    status: '429',
    appliesTo: reachesUpstreamAtOnce,
    headers: RETRY_LATER,
    send: (row) => {
      const token = row.access.replace(/^.*=/, '');
      for (let sent = 0; sent < 100; sent++)
        row.world.admission.perSession.join(token, { isGeneration: false, bodyBytes: 0 });
      return request(row, { cookie: row.access }, row.call.sessionPath);
    },
  },
  {
    ...own,
    what: 'when no server is there',
    status: '502',
    appliesTo: callsUpstream,
    isLonely: true,
    send: (row) => request(row),
  },
  {
    ...own,
    what: 'with every place taken',
    status: '503',
    appliesTo: callsUpstream,
    headers: RETRY_LATER,
    send: (row) => {
      const { identityProvider, sessions, reads, streams } = row.world.admission;
      return withFull([identityProvider, sessions, reads, streams], () => request(row));
    },
  },
  {
    ...own,
    what: 'when there is no memory for the audio',
    status: '503',
    appliesTo: ({ path }) => path === '/api/music/generate',
    headers: { 'retry-after': '5', ...IDS },
    send: async (row) => {
      const { ledger } = row.world.admission;
      let taken = 0;
      const response = await whenUpstream(row, () => {
        taken = ledger.limit - ledger.inUse;
        fill(ledger);
        return new Response('audio', { headers: IDS });
      });
      ledger.release(taken);
      return response;
    },
  },
  {
    what: 'when the upstream says 418',
    status: 'default',
    appliesTo: callsUpstream,
    send: (row) => whenUpstream(row, () => html(418, LIMITS)),
  },
];

/** Every situation of every operation, with the key that its response has in the document. */
export function rowsOf(operations: Iterable<string>) {
  return [...operations].flatMap((operation, index) => {
    const call = callOf(operation);
    return SITUATIONS.filter(({ appliesTo }) => appliesTo(call)).map(
      (
        { what, status = call.isProxied ? '2XX' : '200', isOwn, headers = {}, isLonely = false, send },
        at,
      ) => {
        const id = `${index}-${at}`;
        const tokens = { access: `svc_music_access=a${id}`, refresh: `svc_music_refresh=r${id}` };
        const isError = !/^2/.test(status);
        return {
          operation,
          what,
          status,
          headers,
          isLonely,
          isOwn: isError && (isOwn || !call.relays),
          send: (world: World) => send({ call, world, ...tokens }),
        };
      },
    );
  });
}
