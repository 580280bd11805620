/** Parses a request as RFC 9112 has it, for the rules that need to know what exactly was asked for. */

import type { HeaderLine } from '../../support/raw-http.ts';
import type { FuzzRequest } from './grammar/requests.ts';

export interface ParsedRequest {
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
export function parseRequest({ kind, isFramed, bytes }: FuzzRequest): ParsedRequest | undefined {
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

export function isProxied({ target }: ParsedRequest): boolean {
  return target.startsWith(`${PROXY}/v1/`);
}

/** Without credentials, whatever the cookies are. */
export function isPublic({ method, target }: ParsedRequest): boolean {
  return method === 'GET' && PUBLIC.test(target);
}

/** A segment that begins with `;`, or `/v1/auth` in any spelling. */
export function hasForbiddenPath({ target }: ParsedRequest): boolean {
  const path = pathOf(target);
  return SETTLED.test(path) && (path.includes('/;') || isTokenEndpoint(path.slice(PROXY.length)));
}

/** Two cookies of one session name, in one line or in several. */
export function hasTwinCookies({ headers }: ParsedRequest): boolean {
  const names = valuesOf(headers, 'cookie')
    .flatMap((line) => line.split(';'))
    .map((cookie) => cookie.split('=', 1)[0]?.trim());
  return ['svc_music_access', 'svc_music_refresh'].some(
    (session) => names.filter((name) => name === session).length > 1,
  );
}

/** What the request's `Connection` names. */
export function namedByConnection({ headers }: ParsedRequest): readonly string[] {
  return membersOf(headers, 'connection').map((name) => name.toLowerCase());
}

export function pathOf(target: string): string {
  return target.split('?', 1)[0] ?? '';
}

/** Whether a path is `/v1/auth` or below it, for a server that decodes, drops parameters and folds letters. */
export function isTokenEndpoint(path: string): boolean {
  let folded = decoded(path);
  for (let before = ''; before !== folded; ) {
    before = folded;
    folded = simplified(folded);
  }
  return /^\/v1\/auth(?:\/|$)/.test(folded);
}

/** Until nothing is left to decode. Takes one character per byte, and makes text of it. */
function decoded(path: string): string {
  let bytes = path;
  for (let before = ''; before !== bytes; ) {
    before = bytes;
    bytes = decodedOnce(bytes);
  }
  return Buffer.from(bytes, 'latin1').toString();
}

export function decodedOnce(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));
}

function simplified(path: string): string {
  const segments = path
    .normalize('NFKC')
    .toLowerCase()
    .split('/')
    .map((segment) => segment.replace(/;.*/s, '').trim())
    .map((segment) => segment.replace(/[.\s]+$/, ''));
  return `/${segments.filter((segment) => segment !== '').join('/')}`;
}

export function valuesOf(lines: readonly HeaderLine[], name: string): string[] {
  return lines.filter(([each]) => each === name).map(([, value]) => value);
}

/** All lines of the name as one value; undefined when there is none. */
export function joined(lines: readonly HeaderLine[], name: string): string | undefined {
  const values = valuesOf(lines, name);
  return values.length ? values.join(', ') : undefined;
}

/** The members of a comma-separated list without quoted strings, over all lines of the name. */
export function membersOf(lines: readonly HeaderLine[], name: string): string[] {
  return valuesOf(lines, name)
    .flatMap((value) => value.split(','))
    .map((member) => member.trim())
    .filter((member) => member !== '');
}
