/** Brings every operation of the OpenAPI document to each response that it can have. */

import type { Budget } from '../../../src/gateway/admission/budget.ts';
import { fill, TRACK } from '../../support/long-calls.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { SIGN_IN } from '../../support/routes.ts';
import { ORIGIN, type RequestOptions, type World } from '../../support/world.ts';

const TOO_LARGE = '{'.padEnd(2 * 1024 * 1024 + 1);
const PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };
const RETRY_LATER = { 'retry-after': '5', 'proxy-status': 'music-gateway; error=connection_limit_reached' };
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

/** The response that follows from the upstream's to the call, when a refresh succeeds. */
function whenUpstream(world: World, call: Call, respond: () => Response) {
  world.upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
    .on('POST /v1/auth/refresh', () => Response.json(PAIR));
  if (call.upstream) world.upstream.on(call.upstream, respond);
  return request(world, call);
}

/** With a body that is not the gateway’s own. */
function html(status: number, headers = {}): Response {
  return new Response('<p>', { status, headers: { 'content-type': 'text/html', ...headers } });
}

/** While every place of these budgets is taken. */
async function withFull(budgets: readonly Budget[], send: () => Promise<Response>): Promise<Response> {
  const taken = budgets.map((budget) => budget.limit - budget.inUse);
  for (const budget of budgets) fill(budget);
  const response = await send();
  for (const [index, budget] of budgets.entries()) budget.release(taken[index] ?? 0);
  return response;
}

function succeed(world: World, call: Call) {
  const responses = call.hasSession ? [html(401)] : [];
  return whenUpstream(world, call, () => responses.pop() ?? Response.json(PAIR));
}

function whenItSays(status: number, headers: object) {
  return (world: World, call: Call) => whenUpstream(world, call, () => html(status, headers));
}

function fillSessions(world: World, call: Call) {
  return withFull([world.admission.sessions], () => whenUpstream(world, call, () => html(401)));
}

function endSession(world: World, call: Call) {
  world.upstream.on('POST /oauth/token', () => Response.json({}));
  world.upstream.on('POST /v1/auth/refresh', () => new Response('', { status: 400 }));
  if (call.hasSession && call.upstream) world.upstream.on(call.upstream, () => html(401));
  return request(world, call, {}, call.sessionPath);
}

function fillSession(world: World, call: Call) {
  const token = call.access.replace(/^.*=/, '');
  world.admission.perSession.useOf(token).calls = 100;
  return request(world, call, { cookie: call.access }, call.sessionPath);
}

function fillAll(world: World, call: Call) {
  const { identityProvider, sessions, reads, streams } = world.admission;
  return withFull([identityProvider, sessions, reads, streams], () => request(world, call));
}

async function withoutHost({ port }: World, { method, path }: Call) {
  const { body, ...init } = await rawRequest(port, `${method} ${path} HTTP/1.0\r\nOrigin: ${ORIGIN}\r\n\r\n`);
  return new Response(body || null, init);
}

function twoReadings(world: World, call: Call) {
  return request(world, call, {}, call.path.replace(/[^/]*$/, 'a%2fb'));
}

type Situation = readonly [
  /** The key of the response in the document; `ok` for that of a success. */
  status: string,
  what: string,
  appliesTo: (call: Call) => unknown,
  /** The lonely world has no server at the addresses of the upstream and the identity provider. */
  send: (world: World, call: Call, lonely: World) => Promise<Response>,
  headers?: Readonly<Record<string, string>>,
];

const needsOrigin = ({ path }: Call) => path !== '/api/health';
const callsUpstream = ({ upstream }: Call) => upstream;
const callsAtOnce = ({ upstream, path }: Call) => upstream && path !== '/api/auth/idp';
const hasSession = (call: Call) => call.hasSession;
const isProxied = (call: Call) => call.isProxied;
const hasBody = ({ json }: Call) => json !== undefined;

/** The error is the gateway's own even where the upstream's body is relayed. */
const OWN: readonly Situation[] = [
  ['400', 'without a host', needsOrigin, withoutHost],
  ['401', 'when the refresh is refused, or no token is issued', callsUpstream, endSession],
  ['403', 'without an Origin', needsOrigin, (world, call) => request(world, call, { origin: null })],
  ['404', 'with a path of two readings', isProxied, twoReadings],
  ['413', 'with a body over 2 MB', hasBody, (world, call) => request(world, call, { body: TOO_LARGE })],
  ['429', 'when its session has too many requests in flight', callsAtOnce, fillSession, RETRY_LATER],
  ['502', 'when no server is there', callsUpstream, (_, call, lonely) => request(lonely, call)],
  ['503', 'with every place taken', callsUpstream, fillAll, RETRY_LATER],
];
const OTHERS: readonly Situation[] = [
  ['ok', 'when all is well, after a refresh where there is a session', () => true, succeed],
  ['401', 'when the upstream asks for another sign-in', callsAtOnce, whenItSays(401, STEP_UP), STEP_UP],
  ['401', 'when there is no place for the refresh', hasSession, fillSessions, RETRY_LATER],
  ['default', 'when the upstream says 418', callsUpstream, whenItSays(418, LIMITS)],
];

/** Every situation of every operation, with the key that its response has in the document. */
export function rowsOf(operations: Iterable<string>) {
  return [...operations].flatMap((operation, index) =>
    [...OWN, ...OTHERS].flatMap((situation, at) => {
      const [key, what, appliesTo, send, headers = {}] = situation;
      const call = callOf(operation, `${index}-${at}`);
      if (!appliesTo(call)) return [];
      const status = key === 'ok' ? (call.isProxied ? '2XX' : '200') : key;
      const hasEnvelope = key !== 'ok' && (at < OWN.length || !call.relays);
      const sent = (world: World, lonely: World) => send(world, call, lonely);
      return { operation, what, status, hasEnvelope, headers, send: sent };
    }),
  );
}
