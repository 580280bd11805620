/** Upstream and identity provider: parse each call strictly, and respond as its token says, so no state is kept. */

import type net from 'node:net';

export type Call = NonNullable<ReturnType<typeof parseCall>>;

const REQUEST_LINE = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const HEADER_LINE = /^([A-Za-z0-9-]+): ?([\t\x20-\x7e\x80-\xff]*)$/;

/** Undefined until the call is complete. All text has one character per byte. */
export function parseCall(received: string) {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [requestLine = '', ...lines] = received.slice(0, end).split('\r\n');
  const [, method = '', target = ''] = REQUEST_LINE.exec(requestLine) ?? [];
  const fields = lines.map((line) => HEADER_LINE.exec(line) ?? []);
  const headers = new Map(fields.map(([, name = '', value = '']) => [name.toLowerCase(), value]));
  const body = received.slice(end + 4);
  const length = Number(headers.get('content-length') ?? 0);
  if (body.length < length) return undefined;
  /** Whether it is HTTP/1.1 with one length, and nothing follows. */
  const isPlain =
    method !== '' && headers.size === lines.length && !headers.has('') && body.length === length;
  return { method, target, headers, body, isPlain };
}

/** Of the responses to an access token, which names one; 0 breaks the connection. */
export const STATUSES = '200 200 200 401 401 204 206 303 304 404 503 0'.split(' ');
/** The body of every response of the upstream starts so, which identifies one that the gateway passes on. */
export const UPSTREAM_BODY = '{"upstream":';
const ECHO = `${UPSTREAM_BODY}"{m}","error":{"message":"{m} \\u0000<b>"}}`;
/** What must not pass as it is. */
const LINES =
  `Content-Type: \xe9 | Set-Cookie: a=\x80b | Access-Control-Allow-Origin: * | Connection: X-Absent,, ETag
  X-Content-Type-Options: x | Content-Location: HTTP://u:p@{host} | Location: http://{host}/base/v1/x
  Link: <http://{host}/base/v1/x>; rel=next, <//{host}/b>; anchor="http://{host}/b"`.split(/ \| |\n */);
const PAIR = '{"access_token":"acc.{m}.200","refresh_token":"ref.{m}.ok","expires_in":900}';
const PAIRS: Readonly<Record<string, string>> = {
  ok: PAIR,
  crlf: PAIR.replace('200', '200\\r\\nSet-Cookie: a=b'),
  again: PAIR.replace('200', '401').replace('900', '1e308'),
};

/** @param end of the token or code that is exchanged: for most ends the upstream has no pair */
function bodyFor(target: string, end: string): string | undefined {
  if (target.startsWith('/idp/')) return `{"access_token":"idt.{m}.${end}"}`;
  return /^\/base\/v1\/auth\/(?:idp|refresh)$/.test(target) ? PAIRS[end] : ECHO;
}

/** @param marker of the request that the call is made for */
export function respond(socket: net.Socket, { method, target, headers, body }: Call, marker: string): void {
  const [, status = '200'] = /acc\.\w+\.(\d+)$/.exec(headers.get('authorization') ?? '') ?? [];
  const [, end = ''] = /(?:code|idt|ref)\.\w+\.(\w+)/.exec(body) ?? [];
  if (status === '0' || end === 'reset') return void socket.destroy();
  const text = bodyFor(target, end)?.replaceAll('{m}', marker) ?? '';
  const isEmpty = status === '204' || status === '304';
  const length = isEmpty ? '' : `Content-Length: ${text.length}\r\n`;
  const named = LINES.join('\r\n').replaceAll('{host}', headers.get('host') ?? '');
  const head = `HTTP/1.1 ${text ? status : 401} Said\r\n${length}${named}\r\n\r\n`;
  socket.write(isEmpty || method === 'HEAD' ? head : head + text, 'latin1');
}
