/** Upstream and identity provider: parse each call strictly, and respond as its token says, so no state is kept. */

import type net from 'node:net';
import { gzipSync } from 'node:zlib';
import { parseChunks } from '../../support/raw-http.ts';

export type Call = NonNullable<ReturnType<typeof parseCall>>['call'];

/** The body of every response of the upstream starts so, which identifies one that the gateway passes on. */
export const UPSTREAM_BODY = '{"upstream":';
/** What the upstream may respond with beside a body: integration/relay/forwarded-headers has which headers pass. */
export const STATUSES = [200, 200, 200, 204, 205, 206, 300, 303, 304, 307, 400, 404, 416, 429, 503];
export const LINES =
  `Content-Type: application/json | Content-Type: \xe9 | Vary: X-\xe9 | Retry-After: 120 | X-Generation-Id: \xff
  Access-Control-Allow-Origin: * | Set-Cookie: a=\x80b | Connection: X-Absent,, ETag | Content-Security-Policy: x
  Location: http://{host}/base/v1/x | Location: //{host}/v1/x | Content-Location: HTTP://u:p@{host} | Location: /\\{host}
  Link: <http://{host}/base/v1/x>; rel=next, <//{host}/b>; anchor="http://{host}/base/v1/x" | Location: http://[
  X-Content-Type-Options: x | Access-Control-Allow-Origin: http://evil.test`.split(/ \| |\n */);

const REQUEST_LINE = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([A-Za-z0-9-]+): ?([\t\x20-\x7e\x80-\xff]*)$/;

/**
 * Returns the first call and what follows it; undefined until it is complete. All text has one character per byte.
 *
 * @throws Error for whatever is not plain HTTP/1.1
 */
export function parseCall(received: string) {
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
const PAIR_TARGET = /^\/base\/v1\/auth\/(?:idp|refresh)$/;
const ECHO = '{"upstream":"{m}","error":{"message":"{m} \\u0000<b>"}}';
const PAIR = '{"access_token":"acc.{m}.200-0","refresh_token":"ref.{m}.ok","expires_in":900}';
/** What the upstream gives for a token, by its end; for any other one it gives none. */
const PAIRS: Readonly<Record<string, string>> = {
  ok: PAIR,
  crlf: PAIR.replace('200-0', '200-0\\r\\nSet-Cookie: a=b'),
  big: PAIR.replace('.ok', `.ok${'b'.repeat(5000)}`),
  again: PAIR.replace('200-0', '401-0').replace('900', '1e308'),
};

function bodyFor(target: string, flavour: string): string | undefined {
  if (target.startsWith('/idp/'))
    return flavour === 'no' ? undefined : `{"access_token":"idt.{m}.${flavour}"}`;
  if (PAIR_TARGET.test(target)) return PAIRS[flavour];
  return flavour === 'long' ? ECHO + ' '.repeat(100_000) : ECHO;
}

/** Without a bearer token, the path says whose request it is. */
export function respond(socket: net.Socket, { method, target, headers, body }: Call): void {
  const isToken = target.startsWith('/idp/') || PAIR_TARGET.test(target);
  const inPath = target.replace(/(m\d{12}m)/, 'acc.$1.200-0.');
  const given = isToken ? body : (headers.get('authorization') ?? inPath);
  const [, marker = '', flavour = ''] = TOKEN.exec(given) ?? [];
  if (flavour === 'reset') return void socket.destroy();
  if (flavour === 'dies') return void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this');
  const [status = 0, line = 0] = flavour.split('-').map(Number);
  const text = bodyFor(target, flavour)?.replaceAll('{m}', marker);
  if (text === undefined) send(socket, method, 401, '{"error":"invalid_grant"}');
  else if (flavour !== 'gzip')
    send(socket, method, status || 200, text, LINES[line]?.replaceAll('{host}', headers.get('host') ?? ''));
  else send(socket, method, 200, gzipSync(text).toString('latin1'), 'Content-Encoding: gzip');
}

/** @param body one character per byte; a response that must have none gets none */
function send(socket: net.Socket, method: string, status: number, body: string, line = 'X-A: b'): void {
  const isEmpty = status === 204 || status === 304;
  const text = isEmpty || status === 205 ? '' : body;
  const length = isEmpty ? '' : `\r\nContent-Length: ${text.length}`;
  const head = `HTTP/1.1 ${status} Said\r\n${line}${length}\r\n\r\n`;
  socket.write(method === 'HEAD' ? head : head + text, 'latin1');
}
