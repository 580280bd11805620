/** Upstream and identity provider: parse each call strictly, and respond as its token says, so no state is kept. */

import type net from 'node:net';
import { gzipSync } from 'node:zlib';
import { parseChunks } from '../../support/raw-http.ts';

export interface Call {
  readonly method: string;
  /** Byte for byte as it was sent. */
  readonly target: string;
  /** By their names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** One character per byte. */
  readonly body: string;
}

/** The body of every response of the upstream starts so, which identifies one that the gateway passes on. */
export const UPSTREAM_BODY = '{"upstream":';
/** In each header that ends at the gateway. */
export const NEVER_PASSED = 'for-this-hop';
export const STATUSES = [
  200, 200, 200, 201, 204, 205, 206, 300, 303, 304, 307, 400, 404, 409, 416, 429, 503, 507,
];
/** What a response has beside its length; `{host}` stands for the upstream's address. */
export const LINES =
  `Content-Type: application/json | Content-Type: \xe9 | Vary: X-\xe9 | Retry-After: 120 | Age: 7
  X-Generation-Id: \xff | Access-Control-Allow-Origin: * | Set-Cookie: a=\x80b | Connection: X-Absent,, ETag
  Location: http://{host}/base/v1/x | Location: //{host}/v1/x | Content-Location: HTTP://u:p@{host} | Location: /\\{host}
  Link: <http://{host}/base/v1/x>; rel=next, <//{host}/b>; anchor="http://{host}/base/v1/x" | Location: http://[
  Keep-Alive: ${NEVER_PASSED} | Proxy-Authenticate: ${NEVER_PASSED} | Trailer: ${NEVER_PASSED} | TE: ${NEVER_PASSED}
  Connection: X-Generation-Id\r\nX-Generation-Id: ${NEVER_PASSED} | Server: ${NEVER_PASSED} | Upgrade: ${NEVER_PASSED}
  Set-Cookie: ${NEVER_PASSED}=1 | Via: 1.1 ${NEVER_PASSED} | Refresh: 5; url=http://${NEVER_PASSED}
  Clear-Site-Data: "${NEVER_PASSED}" | X-Internal: ${NEVER_PASSED} | X-Content-Type-Options: ${NEVER_PASSED}
  Access-Control-Allow-Origin: http://${NEVER_PASSED} | Content-Security-Policy: ${NEVER_PASSED}`.split(
    / \| |(?<!\r)\n */,
  );

const REQUEST_LINE = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([A-Za-z0-9-]+): ?([\t\x20-\x7e\x80-\xff]*)$/;

/**
 * Returns the first call and what follows it; undefined until it is complete.
 *
 * @throws Error for whatever is not plain HTTP/1.1
 */
export function parseCall(received: string): { readonly call: Call; readonly rest: string } | undefined {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [requestLine = '', ...lines] = received.slice(0, end).split('\r\n');
  const [, method, target] = REQUEST_LINE.exec(requestLine) ?? [];
  const fields = lines.map((line) => HEADER_LINE.exec(line) ?? []);
  const headers = new Map(fields.map(([, name = '', value = '']) => [name.toLowerCase(), value]));
  const length = headers.get('content-length');
  const isChunked = headers.has('transfer-encoding');
  const isPlain = headers.size === lines.length && !headers.has('') && !(isChunked && length !== undefined);
  if (method === undefined || target === undefined || !isPlain || !/^\d{1,8}$/.test(length ?? '0'))
    throw new Error('a call that is not HTTP');
  const after = received.slice(end + 4);
  const bytes = Number(length ?? 0);
  const body = isChunked ? parseChunks(after) : { text: after.slice(0, bytes), length: bytes };
  if (!body || after.length < body.length) return undefined;
  return { call: { method, target, headers, body: body.text }, rest: after.slice(body.length) };
}

const TOKEN = /(?:acc|ref|code|idt)\.(m\d{12}m)\.([\w-]+)/;

/** Without a bearer token, the path says whose request it is. */
export function respond(socket: net.Socket, call: Call): void {
  const { target, headers, body } = call;
  const isToken = target.startsWith('/idp/') || /^\/base\/v1\/auth\/(?:idp|refresh)$/.test(target);
  const inPath = target.replace(/(m\d{12}m)/, 'acc.$1.200-0.');
  const [, marker = '', flavour = ''] =
    TOKEN.exec(isToken ? body : (headers.get('authorization') ?? inPath)) ?? [];
  if (flavour === 'reset') socket.destroy();
  else if (flavour === 'dies') socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this');
  else if (!isToken) sendResource(socket, call, marker, flavour);
  else {
    const given = target.startsWith('/idp/') ? identityToken(marker, flavour) : tokenPair(marker, flavour);
    send(socket, 'POST', given ? 200 : 401, JSON.stringify(given ?? { error: 'invalid_grant' }));
  }
}

function sendResource(socket: net.Socket, { method, headers }: Call, marker: string, flavour: string): void {
  const echo = { upstream: marker, error: { message: `${marker} \u0000<b>` } };
  const text = JSON.stringify(flavour === 'long' ? { ...echo, filling: 'f'.repeat(100_000) } : echo);
  const isEncoded = flavour === 'gzip';
  const [status, line = 0] = flavour.split('-').map(Number);
  const extra = isEncoded
    ? 'Content-Encoding: gzip'
    : LINES[line]?.replaceAll('{host}', headers.get('host') ?? '');
  send(socket, method, status || 200, isEncoded ? gzipSync(text).toString('latin1') : text, extra);
}

function identityToken(marker: string, flavour: string) {
  if (flavour === 'no') return undefined;
  return { access_token: flavour === 'bad' ? 'a\r\nb' : `idt.${marker}.${flavour}` };
}

function tokenPair(marker: string, flavour: string): unknown {
  if (flavour === 'no' || flavour === 'refused') return undefined;
  const access = `acc.${marker}.200-0`;
  const pair = { access_token: access, refresh_token: `ref.${marker}.ok`, expires_in: 900 };
  if (flavour === 'list') return [pair];
  if (flavour === 'crlf') return { ...pair, access_token: `${access}\r\nSet-Cookie: a=b` };
  if (flavour === 'big') return { ...pair, refresh_token: `${pair.refresh_token}${'b'.repeat(5000)}` };
  return flavour === 'again' ? { ...pair, access_token: `acc.${marker}.401-0`, expires_in: 1e308 } : pair;
}

/** @param body one character per byte; a response that must have none gets none */
function send(socket: net.Socket, method: string, status: number, body: string, line = 'X-A: b'): void {
  const isEmpty = status === 204 || status === 304;
  const text = isEmpty || status === 205 ? '' : body;
  const length = isEmpty ? '' : `\r\nContent-Length: ${text.length}`;
  const head = `HTTP/1.1 ${status} Said\r\n${line}${length}\r\n\r\n`;
  socket.write(method === 'HEAD' ? head : head + text, 'latin1');
}
