/** Judges a call that reached the upstream: where it went, what it carried, and for which request. */

import type { HeaderLine } from '../../support/raw-http.ts';
import type { FuzzRequest } from './grammar.ts';
import type { Call } from './recording-upstream.ts';
import { BASE_PATH } from './responses.ts';

/** A request that can be read in only one way. */
export interface ParsedRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly HeaderLine[];
  readonly hasBody: boolean;
}

const REQUEST_LINE = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/;
const OWN_TARGETS = [
  '/idp/oauth/token',
  ...['idp', 'refresh', 'logout'].map((end) => `/base/v1/auth/${end}`),
];
const [TOKEN_ENDPOINT, SIGN_IN, REFRESH] = OWN_TARGETS;
const PUBLIC = /^\/base\/v1\/music\/public\/[A-Za-z0-9\-._~]+(?:\/content)?$/;
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

/** Sign-in, refresh and sign-out: only the gateway's own calls may go there. */
export function isOwnEndpoint(target: string): boolean {
  return OWN_TARGETS.includes(target);
}

/** Undefined for what is mutated, incomplete, or could be read in two ways. */
export function parseRequest({ kind, isFramed, bytes }: FuzzRequest): ParsedRequest | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  const [requestLine = '', ...lines] = bytes.slice(0, end).split('\r\n');
  const [, method, target] = REQUEST_LINE.exec(requestLine) ?? [];
  const headers = lines.flatMap((line): HeaderLine[] => {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name.toLowerCase(), value]];
  });
  const isPlain = kind === 'grammar' && isFramed && headers.length === lines.length;
  if (!isPlain || method === undefined || target === undefined) return undefined;
  if (valuesOf(headers, 'host').join() !== 'gateway.test') return undefined;
  const hasBody = bytes.length > end + 4 && bytes.slice(end + 4) !== '0\r\n\r\n';
  return { method, target, headers, hasBody };
}

export function valuesOf(lines: readonly HeaderLine[], name: string): string[] {
  return lines.filter(([each]) => each === name).map(([, value]) => value);
}

/** The members of a comma-separated list without quoted strings, over all lines of the name, in lower case. */
export function membersOf(lines: readonly HeaderLine[], name: string): string[] {
  const members = valuesOf(lines, name).flatMap((value) => value.split(','));
  return members.map((member) => member.trim().toLowerCase()).filter((member) => member !== '');
}

/** Returns what is wrong with the call by itself; undefined when nothing is. */
export function problemWithCall(call: Call): string | undefined {
  const { method, target, headers, body } = call;
  const problem = METHODS.has(method) ? problemWithHeaders(headers) : `method ${method}`;
  if (problem !== undefined) return problem;
  if (!isOwnEndpoint(target))
    return problemWithPath(target) ?? problemWithCredentials(method, target, headers);
  const isToken =
    target === TOKEN_ENDPOINT || /^\{"(?:access|refresh)_token":"[^"]*(?:\\.[^"]*)*"\}$/.test(body);
  if (method !== 'POST' || !isToken)
    return 'a token endpoint was reached with what is not a call of the gateway';
  const isOpen = target === SIGN_IN || target === REFRESH;
  return isOpen && headers.has('authorization') ? 'credentials at sign-in' : undefined;
}

function problemWithHeaders(headers: Call['headers']): string | undefined {
  const stranger = [...headers.keys()].find((name) => !HEADERS.has(name));
  if (stranger !== undefined) return `header ${stranger} was forwarded`;
  if (!/^[\w.~-]{1,64}$/.test(headers.get('x-request-id') ?? '')) return 'the request id is not a sane one';
  if (!/^\w\w-\w{32}-\w{16}-\w\w$/.test(headers.get('traceparent') ?? '')) return 'traceparent is not one';
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

function problemWithCredentials(
  method: string,
  target: string,
  headers: Call['headers'],
): string | undefined {
  const authorization = headers.get('authorization');
  if (authorization !== undefined)
    return /^Bearer [\x21-\x7e]+$/.test(authorization) ? undefined : 'Authorization is no bearer token';
  return method === 'GET' && PUBLIC.test(target)
    ? undefined
    : 'no Authorization on a path that is not public';
}

/** Judges which headers of the request came with the call that it caused. */
export function problemWithForwarding(call: Call, request: ParsedRequest): string | undefined {
  const { method, target, hasBody } = request;
  if (call.headers.has('authorization') && hasTwinCookies(request))
    return 'two cookies of one session name caused a call';
  if (!target.startsWith('/api/upstream/v1/') || isOwnEndpoint(call.target)) return undefined;
  if (hasBody && (method === 'GET' || method === 'HEAD')) return `a ${method} with a body was forwarded`;
  const via = call.headers.get('via');
  if (!/(?:^|[ ,])1\.1 music-gateway$/.test(via ?? '')) return `Via: ${via}`;
  const isRange = call.headers.has('range') && call.headers.get('accept-encoding') !== 'identity';
  return isRange ? 'a range of an encoded body is asked for' : problemWithForwarded(call, request);
}

/** Two cookies of one session name, in one line or in several. */
function hasTwinCookies({ headers }: ParsedRequest): boolean {
  const cookies = valuesOf(headers, 'cookie').flatMap((line) => line.split(';'));
  const names = cookies.map((cookie) => cookie.split('=', 1).join().trim());
  const isTwice = (session: string) => names.indexOf(session) !== names.lastIndexOf(session);
  return ['svc_music_access', 'svc_music_refresh'].some(isTwice);
}

function problemWithForwarded(call: Call, request: ParsedRequest): string | undefined {
  const { headers: sent } = request;
  const named = membersOf(sent, 'connection');
  for (const name of [...FORWARDED, 'tracestate']) {
    const [value, ...others] = valuesOf(sent, name);
    if (value === undefined || others.length || !/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value))
      continue;
    const passed = call.headers.get(name);
    // These are what the gateway sets itself.
    const isPassed = passed === value && value !== 'application/json' && value !== 'identity';
    if (named.includes(name) && isPassed) return `${name} was forwarded, although Connection names it`;
    if (named.includes(name) || name === 'tracestate' || mayDiffer(name, value, request)) continue;
    if (passed !== value) return `${name} was not forwarded as it was`;
  }
  return undefined;
}

/** A long range is asked for slice by slice, and one of an encoded body is of no use. */
function mayDiffer(name: string, value: string, { headers, hasBody }: ParsedRequest): boolean {
  if (name === 'range') return value.endsWith('-');
  if (name === 'accept-encoding') return valuesOf(headers, 'range').length > 0;
  return name === 'content-type' && !hasBody;
}
