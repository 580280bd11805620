/** How the upstream and the identity provider respond: the tokens of a call say it, so no state is kept. */

import { gzipSync } from 'node:zlib';
import fc, { type Arbitrary } from 'fast-check';
import { few, items, pick, words } from './choices.ts';
import type { Call } from './recording-upstream.ts';

export const BASE_PATH = '/base';
/** Every token starts so; none may ever reach a browser outside of a cookie. */
export const TOKEN_PREFIXES = ['acc.m', 'ref.m', 'idt.m'];
/** The body of every error of the upstream starts so, which identifies an error that the gateway passes on. */
export const UPSTREAM_BODY = '{"upstream":';
/** In each header that ends at the gateway. */
export const NEVER_PASSED = 'for-this-hop';

/** The bytes of a response, or the death of the upstream before or within it. */
export type UpstreamResponse = Buffer | 'dies before' | 'dies within';

/** `{host}` and `{port}` in its lines stand for the upstream's. */
export interface RichResponse {
  readonly status: number;
  /** Without the one that says how long the body is. */
  readonly lines: readonly string[];
}

/** Only the tables say what each becomes (unit/mapped-addresses): here none may reveal the upstream's host. */
const ADDRESSES =
  words(`/base/v1/x?a=b#c http://{host}/base/v1/x //{host}/v1/x https://{host}/base/v1/x HTTP://{host} next
  http://u:p@{host}/base/v1/x http://127.1:{port}/base/v1/x http://2130706433:{port}/v1/x ?page=2 /base
  /\\{host}/base/v1/x http:\\\\{host} http:///{host} http://[ https://cdn.test/a,b;c ../../../v1/x`);
const LINK_PARAMETERS = items(`; rel=next | ; anchor="http://{host}/base/v1/x" |  <http://{host}/base/v1/x>`);
const STATUSES = [
  200, 200, 200, 200, 200, 200, 201, 204, 205, 206, 300, 301, 303, 304, 307, 400, 403, 404, 409, 412, 416,
  422, 429, 429, 503, 507,
];
const LINES =
  items(`Content-Type: audio/mpeg | Content-Type: text/html | Vary: Accept, * | Vary: X-\xe9 | Age: 7
  Cache-Control: public, max-age=60 | X-Generation-Id: \xff | Content-Type: \xe9 | Retry-After: 120
  Access-Control-Allow-Origin: * | Set-Cookie: a=\x80b | Connection: X-Absent,, ETag | ETag: W/"a"
  Keep-Alive: ${NEVER_PASSED} | Proxy-Authenticate: ${NEVER_PASSED} | Proxy-Connection: ${NEVER_PASSED}
  TE: ${NEVER_PASSED} | Trailer: ${NEVER_PASSED} | Upgrade: ${NEVER_PASSED} | Set-Cookie: ${NEVER_PASSED}=1
  Connection: X-Generation-Id\r\nX-Generation-Id: ${NEVER_PASSED} | Server: ${NEVER_PASSED}
  Via: 1.1 ${NEVER_PASSED} | Refresh: 5; url=http://${NEVER_PASSED} | Alt-Svc: ${NEVER_PASSED}=":443"
  Clear-Site-Data: "${NEVER_PASSED}" | X-Internal: ${NEVER_PASSED} | X-Content-Type-Options: ${NEVER_PASSED}
  Access-Control-Allow-Origin: http://${NEVER_PASSED} | Content-Security-Policy: ${NEVER_PASSED}`);

export function richResponse(): Arbitrary<RichResponse> {
  const link = fc.tuple(pick(ADDRESSES), pick(LINK_PARAMETERS)).map(([target, more]) => `<${target}>${more}`);
  const addressed = fc.oneof(
    fc.tuple(pick(['Location: ', 'Content-Location: ']), pick(ADDRESSES)).map((each) => each.join('')),
    fc.array(link, { minLength: 1, maxLength: 4 }).map((links) => `Link: ${links.join(', ')}`),
  );
  return fc.tuple(pick(STATUSES), few(0.8, pick(LINES)), few(0.5, addressed)).map(([status, ...lines]) => {
    const nameOf = (line: string) => line.split(':', 1).join();
    // Only these are sent several times: of any other one address would be made of two.
    const isNew = (line: string, at: number, all: readonly string[]) =>
      /^(?:vary|link):/i.test(line) || all.findIndex((each) => nameOf(each) === nameOf(line)) === at;
    return { status, lines: lines.flat().filter(isNew) };
  });
}

const TOKEN = /(?:acc|ref|code|idt)\.(m\d{12}m)\.(\w+)/;

/** @param richOf the response that was generated with the request of that marker */
export function responseTo(
  call: Call,
  richOf: (marker: string) => RichResponse | undefined,
): UpstreamResponse {
  const path = call.target.slice(BASE_PATH.length);
  const [, marker = '', flavour = ''] = TOKEN.exec(call.body) ?? [];
  if (call.target.startsWith('/idp/')) return identityToken(marker, flavour);
  if (path === '/v1/auth/idp' || path === '/v1/auth/refresh') return tokenPair(marker, flavour);
  const authorization = call.headers.get('authorization');
  // Without a token only the path says which response is wanted.
  const [, owner = '', wanted = 'rich'] = (authorization === undefined
    ? /(m\d{12}m)/.exec(path)
    : TOKEN.exec(authorization)) ?? ['', '', 'ok'];
  return resource(call, owner, wanted, richOf(owner));
}

function identityToken(marker: string, flavour: string): UpstreamResponse {
  if (flavour === 'reset') return 'dies before';
  if (flavour === 'no') return json(400, { error: 'invalid_grant' });
  return json(200, { access_token: flavour === 'bad' ? 'a\r\nb' : `idt.${marker}.${flavour}` });
}

function tokenPair(marker: string, flavour: string): UpstreamResponse {
  if (flavour === 'reset') return 'dies before';
  if (flavour === 'no' || flavour === 'refused') return json(401, { error: { message: 'no' } });
  const access = `acc.${marker}.ok`;
  const pair = { access_token: access, refresh_token: `ref.${marker}.ok`, expires_in: 900 };
  const bodies = new Map<string, unknown>([
    ['list', [pair]],
    ['crlf', { ...pair, access_token: `${access}\r\nSet-Cookie: a=b` }],
    ['semi', { ...pair, access_token: `${access};,"%\\ok`, expires_in: '12.7' }],
    ['big', { ...pair, refresh_token: `${pair.refresh_token}${'b'.repeat(5000)}` }],
    ['again', { ...pair, access_token: `acc.${marker}.401`, expires_in: 1e308 }],
  ]);
  return json(200, bodies.get(flavour) ?? pair);
}

function resource(
  { method, headers }: Call,
  marker: string,
  flavour: string,
  rich: RichResponse | undefined,
): UpstreamResponse {
  if (flavour === 'reset') return 'dies before';
  if (flavour === 'dies') return 'dies within';
  const echo = { upstream: marker, error: { message: `${marker} \u0000<b>` } };
  if (flavour === 'long') return json(200, { ...echo, filling: 'f'.repeat(100_000) }, method);
  if (flavour === 'gzip') {
    const text = gzipSync(JSON.stringify(echo)).toString('latin1');
    return response(200, ['Content-Encoding: gzip'], text, method);
  }
  if (flavour !== 'rich' || !rich) return json(Number(flavour) || 200, echo, method);
  const host = headers.get('host') ?? '';
  const fill = (line: string) =>
    line.replaceAll('{host}', host).replaceAll('{port}', host.split(':')[1] ?? '');
  return response(rich.status, rich.lines.map(fill), JSON.stringify(echo), method);
}

function json(status: number, body: unknown, method = 'POST'): UpstreamResponse {
  return response(status, ['Content-Type: application/json'], JSON.stringify(body), method);
}

/** @param body one character per byte; a response that must have none gets none */
function response(status: number, lines: readonly string[], body: string, method: string): UpstreamResponse {
  const isEmpty = status === 204 || status === 304;
  const text = isEmpty || status === 205 ? '' : body;
  const all = isEmpty ? lines : [...lines, `Content-Length: ${text.length}`];
  const head = `HTTP/1.1 ${status} Said\r\n${all.join('\r\n')}\r\n\r\n`;
  return Buffer.from(method === 'HEAD' ? head : head + text, 'latin1');
}
