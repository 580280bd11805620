/** Judges a call that reached the upstream: where it went, what it carried, and for which request. */

import type { Call } from './call-parser.ts';
import {
  decodedOnce,
  hasForbiddenPath,
  hasTwinCookies,
  isProxied,
  isPublic,
  isTokenEndpoint,
  joined,
  namedByConnection,
  type ParsedRequest,
  pathOf,
  valuesOf,
} from './parsed-request.ts';
import { BASE_PATH } from './upstream-responses.ts';

const TOKEN_ENDPOINT = '/idp/oauth/token';
const SIGN_IN = `${BASE_PATH}/v1/auth/idp`;
const REFRESH = `${BASE_PATH}/v1/auth/refresh`;
const LOGOUT = `${BASE_PATH}/v1/auth/logout`;
const PUBLIC = /^\/base\/v1\/music\/public\/[A-Za-z0-9\-._~]+(?:\/content)?$/;
/** The default of `RELAY_SLICE_BYTES`. */
const SLICE_BYTES = 256 * 1024;
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);
/** Those that pass as they are. */
const FORWARDED = [
  ...['accept', 'accept-language', 'accept-encoding', 'content-type', 'content-encoding', 'cache-control'],
  ...['pragma', 'idempotency-key', 'if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'],
  ...['if-range', 'range'],
];
const HEADERS = new Set([
  ...['host', 'connection', 'user-agent', 'content-length', 'transfer-encoding', 'authorization', 'via'],
  ...['traceparent', 'tracestate', 'x-request-id'],
  ...FORWARDED,
]);
/** What the gateway may set by itself on a call of its own. */
const OWN_VALUES = new Set(['application/json', 'identity']);

/** Sign-in, refresh and sign-out: only the gateway's own calls may go there. */
export function isOwnEndpoint(target: string): boolean {
  return target === TOKEN_ENDPOINT || target === SIGN_IN || target === REFRESH || target === LOGOUT;
}

/** Returns what is wrong with the call by itself; undefined when nothing is. */
export function problemWithCall(call: Call): string | undefined {
  const { method, target, headers } = call;
  if (!METHODS.has(method)) return `method ${method}`;
  const stranger = [...headers.keys()].find((name) => !HEADERS.has(name));
  if (stranger !== undefined) return `header ${stranger} was forwarded`;
  if (!/^[\w.~-]{1,64}$/.test(headers.get('x-request-id') ?? '')) return 'the request id is not a sane one';
  if (!/^\w\w-\w{32}-\w{16}-\w\w$/.test(headers.get('traceparent') ?? '')) return 'traceparent is not one';
  if (!/^(?:keep-alive|close)$/i.test(headers.get('connection') ?? 'close'))
    return `Connection: ${headers.get('connection')}`;
  if (target === TOKEN_ENDPOINT) return method === 'POST' ? undefined : 'the token endpoint takes a POST';
  return problemWithPath(target) ?? problemWithCredentials(call);
}

/** Written without regard to how the gateway judges a path. */
function problemWithPath(target: string): string | undefined {
  if (!target.startsWith(`${BASE_PATH}/v1/`)) return 'the target is not below /v1/';
  let path = pathOf(target);
  for (let round = 0; round < 8; round++) {
    const segments = path.split(/[/\\]/).map((segment) => segment.replace(/;.*/s, ''));
    if (segments.includes('..') || segments.includes('.')) return 'the path has dot segments';
    if ([...path].some((character) => character < ' ' || character === '\x7f' || character === '\\')) {
      return 'the path has control characters or backslashes';
    }
    path = decodedOnce(path);
  }
  if (isOwnEndpoint(target)) return undefined;
  const written = pathOf(target).slice(BASE_PATH.length);
  if (written.includes('/;')) return 'a path segment begins with a semicolon';
  return isTokenEndpoint(written) ? 'a token endpoint was reached through the proxy' : undefined;
}

function problemWithCredentials({ method, target, headers, body }: Call): string | undefined {
  const authorization = headers.get('authorization');
  const isOwn = target === SIGN_IN || target === REFRESH || target === LOGOUT;
  if (isOwn && (method !== 'POST' || !/^\{"(?:access|refresh)_token":"[^"]*(?:\\.[^"]*)*"\}$/.test(body))) {
    return 'a token endpoint was reached with what is not the gateway’s own call';
  }
  if (target === SIGN_IN || target === REFRESH)
    return authorization === undefined ? undefined : 'credentials at sign-in';
  if (authorization === undefined) {
    const mayBeAnonymous = method === 'GET' && PUBLIC.test(target);
    return mayBeAnonymous ? undefined : 'no Authorization on a path that is not public';
  }
  return /^Bearer [\x21-\x7e]+$/.test(authorization) ? undefined : 'Authorization is no bearer token';
}

/** Judges which headers of the request came with the call that it caused. */
export function problemWithForwarding(call: Call, request: ParsedRequest): string | undefined {
  if (hasTwinCookies(request) && !isPublic(request) && !request.target.startsWith('/api/auth/idp'))
    return 'two cookies of one session name caused a call';
  if (hasForbiddenPath(request)) return 'a path that must be 404 caused a call';
  return isProxied(request) && !isOwnEndpoint(call.target) ? problemWithProxied(call, request) : undefined;
}

function problemWithProxied(call: Call, request: ParsedRequest): string | undefined {
  const { headers } = call;
  const leaked = namedByConnection(request).find((name) => isPassedOn(name, call, request));
  if (leaked !== undefined) return `${leaked} was forwarded, although Connection names it`;
  if (request.hasBody && (request.method === 'GET' || request.method === 'HEAD'))
    return `a ${request.method} with a body was forwarded`;
  if (!/(?:^|[ ,])1\.1 music-gateway$/.test(headers.get('via') ?? '')) return `Via: ${headers.get('via')}`;
  if (passes(request, 'range') && headers.get('accept-encoding') !== 'identity')
    return `Range with Accept-Encoding: ${headers.get('accept-encoding')}`;
  const lost = FORWARDED.find(
    (name) =>
      passes(request, name) &&
      headers.get(name) !== joined(request.headers, name) &&
      !(name === 'range' && isFirstSlice(headers.get(name), joined(request.headers, name))) &&
      !(name === 'accept-encoding' && valuesOf(request.headers, 'range').length) &&
      !(name === 'content-type' && !request.hasBody),
  );
  return lost && `${lost} was not forwarded as it was`;
}

/** A long range is asked of the upstream slice by slice. No response of this upstream can be continued. */
function isFirstSlice(asked: string | undefined, range: string | undefined): boolean {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
  const end = Number(first) + SLICE_BYTES - 1;
  return asked === `bytes=${first}-${end}` && (last === '' || Number(last) > end);
}

function isPassedOn(name: string, { headers }: Call, request: ParsedRequest): boolean {
  const sent = joined(request.headers, name);
  const passed = headers.get(name);
  if (sent === undefined || passed === undefined) return false;
  // The trace goes on with a span of the gateway's own.
  if (name === 'traceparent') return passed.slice(3, 35) === sent.slice(3, 35);
  return [...FORWARDED, 'tracestate'].includes(name) && passed === sent && !OWN_VALUES.has(sent);
}

/** Sent once, with a value that is valid beyond doubt. */
function passes(request: ParsedRequest, name: string): boolean {
  const [value, ...others] = valuesOf(request.headers, name);
  if (value === undefined || others.length || namedByConnection(request).includes(name)) return false;
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value);
}
