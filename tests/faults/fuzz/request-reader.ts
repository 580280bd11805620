/** Reads a request as RFC 9112 has it, for the rules that need to know what exactly was asked for. */

import type { FuzzRequest } from './fuzz-request.ts';
import { type HeaderLine, membersOf, valuesOf } from './header-lines.ts';
import { isTokenEndpoint, pathOf } from './paths.ts';

export interface ReadRequest {
  readonly method: string;
  /** As it was sent; begins with a slash. */
  readonly target: string;
  readonly headers: readonly HeaderLine[];
  readonly hasBody: boolean;
}

const PROXY = '/api/upstream';
const REQUEST_LINE = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/;
const PUBLIC = /^\/api\/upstream\/v1\/music\/public\/(?!\.\.?(?:\/|$))[A-Za-z0-9\-._~]+(?:\/content)?$/;
/** A path that no server changes before the gateway sees it. */
const SETTLED = /^\/api\/upstream\/v1\/(?!(?:.*\/)?(?:\.|%2e){1,2}(?:\/|$))[^\\#]*$/i;

/** Undefined for what is mutated, incomplete, or could be read in two ways. */
export function readRequest({ kind, isFramed, bytes }: FuzzRequest): ReadRequest | undefined {
  if (kind !== 'grammar' || !isFramed) return undefined;
  const end = bytes.indexOf('\r\n\r\n');
  const [requestLine = '', ...lines] = bytes.slice(0, end).split('\r\n');
  const [, method, target] = REQUEST_LINE.exec(requestLine) ?? [];
  if (method === undefined || target === undefined) return undefined;
  const headers: HeaderLine[] = [];
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    headers.push([name.toLowerCase(), value]);
  }
  if (valuesOf(headers, 'host').join() !== 'gateway.test') return undefined;
  const hasBody = bytes.length > end + 4 && bytes.slice(end + 4) !== '0\r\n\r\n';
  return { method, target, headers, hasBody };
}

export function isProxied({ target }: ReadRequest): boolean {
  return target.startsWith(`${PROXY}/v1/`);
}

/** Without credentials, whatever the cookies are. */
export function isPublic({ method, target }: ReadRequest): boolean {
  return method === 'GET' && PUBLIC.test(target);
}

/** A segment that begins with `;`, or `/v1/auth` in any spelling. */
export function hasForbiddenPath({ target }: ReadRequest): boolean {
  const path = pathOf(target);
  return SETTLED.test(path) && (path.includes('/;') || isTokenEndpoint(path.slice(PROXY.length)));
}

/** Two cookies of one session name, in one line or in several. */
export function hasTwinCookies({ headers }: ReadRequest): boolean {
  const names = valuesOf(headers, 'cookie')
    .flatMap((line) => line.split(';'))
    .map((cookie) => cookie.split('=', 1)[0]?.trim());
  return ['svc_music_access', 'svc_music_refresh'].some(
    (session) => names.filter((name) => name === session).length > 1,
  );
}

/** What the request's `Connection` names. */
export function namedByConnection({ headers }: ReadRequest): readonly string[] {
  return membersOf(headers, 'connection').map((name) => name.toLowerCase());
}
