/** Judges a call that reached the upstream: where it went, what it carried, and on whose behalf. */

import type { Call } from './call-reader.ts';
import type { FuzzRequest } from './fuzz-request.ts';
import { markersIn } from './marker.ts';
import { isTokenEndpoint, pathOf } from './paths.ts';
import { BASE_PATH } from './upstream-answers.ts';

const TOKEN_ENDPOINT = '/idp/oauth/token';
const SIGN_IN = `${BASE_PATH}/v1/auth/idp`;
const REFRESH = `${BASE_PATH}/v1/auth/refresh`;
const LOGOUT = `${BASE_PATH}/v1/auth/logout`;
const PUBLIC = /^\/base\/v1\/music\/public\/[A-Za-z0-9\-._~]+(?:\/content)?$/;
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);
const HEADERS = new Set([
  ...[
    'host',
    'connection',
    'user-agent',
    'accept-encoding',
    'content-length',
    'transfer-encoding',
    'authorization',
  ],
  ...[
    'accept',
    'accept-language',
    'content-type',
    'idempotency-key',
    'if-match',
    'if-none-match',
    'if-modified-since',
  ],
  ...['if-unmodified-since', 'if-range', 'range', 'traceparent', 'tracestate', 'x-request-id'],
  ...['content-encoding', 'cache-control', 'pragma', 'via'],
]);

/** Sign-in, refresh and sign-out: only the gateway's own calls may go there. */
export function isOwnEndpoint(target: string): boolean {
  return target === TOKEN_ENDPOINT || target === SIGN_IN || target === REFRESH || target === LOGOUT;
}

/** What is wrong with the call by itself; undefined when nothing is. */
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

/** Written without a look at how the gateway judges a path. */
function problemWithPath(target: string): string | undefined {
  if (!target.startsWith(`${BASE_PATH}/v1/`)) return 'the target is not below /v1/';
  let path = pathOf(target);
  for (let round = 0; round < 8; round++) {
    const segments = path.split(/[/\\]/).map((segment) => segment.replace(/;.*/s, ''));
    if (segments.includes('..') || segments.includes('.')) return 'the path has dot segments';
    if ([...path].some((character) => character < ' ' || character === '\x7f' || character === '\\')) {
      return 'the path has control characters or backslashes';
    }
    path = path.replace(/%[0-9a-f]{2}/gi, (encoded) =>
      String.fromCharCode(Number.parseInt(encoded.slice(1), 16)),
    );
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
    return method === 'GET' && PUBLIC.test(target)
      ? undefined
      : 'no Authorization on a path that is not public';
  }
  return /^Bearer [\x21-\x7e]+$/.test(authorization) ? undefined : 'Authorization is no bearer token';
}

/** The markers of a call must be of one request, and that request must be one that may pass. */
export function problemWithOwner(
  call: Call,
  seed: number,
  find: (marker: string) => FuzzRequest | undefined,
) {
  const text = [call.target, ...call.headers.values(), call.body].join('\n');
  const [marker, ...others] = markersIn(text, seed);
  if (marker === undefined) return { owner: undefined, problem: undefined };
  const owner = find(marker);
  if (!owner) return { owner, problem: 'the call belongs to no request under way' };
  if (others.length) return { owner, problem: `the call mixes requests: ${[marker, ...others].join(', ')}` };
  if (!owner.mayPass) return { owner, problem: 'a request without an allowed Origin caused a call' };
  return { owner, problem: undefined };
}
