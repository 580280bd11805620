/** Judges a call that reached the upstream: where it went, and with what. Its form is judged where it is parsed. */

import type { Call } from './recording-upstream.ts';
import { BASE_PATH } from './responses.ts';

const TOKEN_ENDPOINT = '/idp/oauth/token';
const SIGN_IN = '/base/v1/auth/idp';
const REFRESH = '/base/v1/auth/refresh';
const OWN_TARGETS = [TOKEN_ENDPOINT, SIGN_IN, REFRESH, '/base/v1/auth/logout'];
const PUBLIC = /^\/base\/v1\/music\/public\/[A-Za-z0-9\-._~]+(?:\/content)?$/;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const HEADERS = new Set(
  `host connection user-agent content-length transfer-encoding authorization via traceparent tracestate
    x-request-id accept accept-language accept-encoding content-type content-encoding cache-control
    pragma idempotency-key range if-range if-match if-none-match if-modified-since if-unmodified-since`.split(
    /\s+/,
  ),
);

/** @returns what is wrong with the call; undefined when nothing is */
export function problemWithCall(call: Call): string | undefined {
  const { method, target, headers } = call;
  const wrong = METHODS.includes(method) ? problemWithHeaders(headers) : `method ${method}`;
  if (wrong !== undefined) return wrong;
  if (OWN_TARGETS.includes(target)) return problemWithOwnCall(call);
  const isPublic = method === 'GET' && PUBLIC.test(target);
  const isStray = !headers.has('authorization') && !isPublic;
  return problemWithPath(target) ?? (isStray ? 'no token on a path that is not public' : undefined);
}

function problemWithOwnCall({ method, target, headers, body }: Call): string | undefined {
  const isToken = /^\{"(?:access|refresh)_token":"[^"]*(?:\\.[^"]*)*"\}$/.test(body);
  if (method !== 'POST' || !(isToken || target === TOKEN_ENDPOINT))
    return 'a token endpoint was reached with what is not a call of the gateway';
  const isOpen = target === SIGN_IN || target === REFRESH;
  return isOpen && headers.has('authorization') ? 'credentials at sign-in' : undefined;
}

function problemWithHeaders(headers: Call['headers']): string | undefined {
  const stranger = [...headers.keys()].find((name) => !HEADERS.has(name));
  if (stranger !== undefined) return `header ${stranger} was forwarded`;
  if (!/^[\w.~-]{1,64}$/.test(headers.get('x-request-id') ?? '')) return 'the request id is not a sane one';
  if (!/^\w\w-\w{32}-\w{16}-\w\w$/.test(headers.get('traceparent') ?? '')) return 'traceparent is not one';
  if (!/^Bearer [\x21-\x7e]+$/.test(headers.get('authorization') ?? 'Bearer x'))
    return 'Authorization is no bearer token';
  const isPlain = /^(?:keep-alive|close)$/i.test(headers.get('connection') ?? 'close');
  return isPlain ? undefined : 'Connection was passed on';
}

/** Written without regard to how the gateway judges a path: as by a server that decodes again and again. */
function problemWithPath(target: string): string | undefined {
  if (!target.startsWith(`${BASE_PATH}/v1/`)) return 'the target is not below /v1/';
  let path = target.split('?', 1).join().slice(BASE_PATH.length);
  if (path.includes('/;')) return 'a path segment begins with a semicolon';
  for (let round = 0; round < 8; round++) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
    if (/[\x00-\x1f\x7f\\]/.test(path)) return 'the path has control characters or backslashes';
    const text = Buffer.from(path, 'latin1').toString().normalize('NFKC').toLowerCase();
    const segments = text.split('/').map((segment) => segment.replace(/;.*/s, '').trim());
    if (segments.includes('..') || segments.includes('.')) return 'the path has dot segments';
    const [, first] = segments.map((segment) => segment.replace(/[.\s]+$/, '')).filter((name) => name !== '');
    if (first === 'auth') return 'a token endpoint was reached through the proxy';
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return undefined;
}
