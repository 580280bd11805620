/** How the upstream and the identity provider respond: the tokens of a call say it, so no state is kept. */

import { gzipSync } from 'node:zlib';
import fc, { type Arbitrary } from 'fast-check';
import { type HeaderLine, headerLine } from '../../support/raw-http.ts';
import { connection, few, items, maybe, pick, words } from './choices.ts';
import type { Call } from './recording-upstream.ts';

export const BASE_PATH = '/base';
/** Every token starts so; none may ever reach a browser outside of a cookie. */
export const TOKEN_PREFIXES = ['acc.m', 'ref.m', 'idt.m'];
/** The body of every error of the upstream starts so, which identifies an error that the gateway passes on. */
export const UPSTREAM_BODY = '{"upstream":';

export type UpstreamResponse =
  | { readonly bytes: Buffer; readonly status: number; readonly headers: readonly HeaderLine[] }
  | { readonly dies: 'before' | 'within' };

/** `{host}` and `{port}` in its lines stand for the upstream's. */
export interface RichResponse {
  readonly status: number;
  /** Without the one that says how long the body is. */
  readonly lines: readonly string[];
}

/** Only the tables say what each becomes (unit/mapped-addresses): here none may reveal the upstream's host. */
const ADDRESSES = [
  ...words(
    '/base/v1/x?a=b#c http://{host}/base/v1/x //{host}/v1/x https://{host}/base/v1/x HTTP://{host} next',
  ),
  ...words(
    'http://u:p@{host}/base/v1/x http://127.1:{port}/base/v1/x http://2130706433:{port}/v1/x ?page=2 /base',
  ),
  ...words(
    '/\\{host}/base/v1/x http:\\\\{host} http:///{host} http://[ https://cdn.test/a,b;c ../../../v1/x',
  ),
];
const LINK_PARAMETERS =
  items(`; rel=next | ; title="say \\"<x>, y\\""; rel=up | ; anchor="http://{host}/base/v1/x"
  ; rel=http://{host}/base/v1/x |  <http://{host}/base/v1/x> | ; title="open`);
const STATUSES = [
  ...[200, 200, 200, 200, 200, 200, 201, 204, 205, 206, 300, 301, 303, 304, 307],
  ...[400, 403, 404, 409, 412, 416, 422, 429, 429, 503, 507],
];
const PASSING = items(`Content-Type: audio/mpeg | Content-Type: text/html | Content-Language: sw
  Content-Disposition: attachment; filename="a.mp3" | Accept-Ranges: bytes | ETag: W/"a" | Expires: 0
  Last-Modified: Tue, 01 Sep 2026 10:00:00 GMT | Age: 7 | Allow: GET, PUT | Vary: Accept, * | Vary: X-\xe9
  Cache-Control: public, max-age=60 | X-Generation-Id: gen-7 | X-Music-Creation-Id: creation-7
  Retry-After: 120 | RateLimit: "day";r=0;t=3600 | RateLimit-Remaining: 3 | X-RateLimit-Remaining: 4`);
const ENDING =
  items(`Keep-Alive: timeout=77 | Proxy-Authenticate: Basic realm="up" | Proxy-Connection: keep-alive
  TE: gzip | Trailer: X-Sum | Upgrade: h2c | Proxy-Authentication-Info: nextnonce="n"
  Set-Cookie: up=1; Path=/ | Server: up/1 | Via: 1.1 up | Refresh: 5; url=http://evil.test/
  Alt-Svc: h3=":443" | Clear-Site-Data: "cookies" | X-Internal: node-7
  Access-Control-Allow-Origin: http://evil.test | Content-Security-Policy: default-src http:
  X-Content-Type-Options: other`);

export function richResponse(): Arbitrary<RichResponse> {
  const link = fc.tuple(pick(ADDRESSES), pick(LINK_PARAMETERS)).map(([target, more]) => `<${target}>${more}`);
  const addressed = fc.oneof(
    fc.tuple(pick(['Location: ', 'Content-Location: ']), pick(ADDRESSES)).map((each) => each.join('')),
    fc.array(link, { minLength: 1, maxLength: 4 }).map((links) => `Link: ${links.join(', ')}`),
  );
  const lines = fc.tuple(few(0.7, pick(PASSING)), few(0.5, addressed), few(0.4, pick(ENDING)));
  const named = maybe(0.4, connection(['keep-alive', 'X-Absent', '']));
  return fc.tuple(pick(STATUSES), lines, named).map(([status, lines, [connectionOf]]) => {
    const nameOf = (line: string) => line.split(':', 1).join();
    // Only these are sent several times: of any other one address would be made of two.
    const isNew = (line: string, at: number, all: readonly string[]) =>
      /^(?:vary|link):/i.test(line) || all.findIndex((each) => nameOf(each) === nameOf(line)) === at;
    const all = lines.flat().filter(isNew);
    return { status, lines: connectionOf ? [...all, connectionOf(all)] : all };
  });
}

const TOKEN = /(?:acc|ref|code|idt)\.(m\d{12}m)\.(\w+)/;
const DIES_BEFORE: UpstreamResponse = { dies: 'before' };

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
  const [, owner = '', wanted = 'ok'] = TOKEN.exec(authorization ?? '') ?? [];
  if (authorization !== undefined) return resource(call, owner, wanted, richOf(owner));
  const named = /m\d{12}m/.exec(path)?.[0] ?? '';
  return resource(call, named, 'rich', richOf(named));
}

function identityToken(marker: string, flavour: string): UpstreamResponse {
  if (flavour === 'reset') return DIES_BEFORE;
  const failures = new Map<string, [status: number, body: unknown]>([
    ['no', [400, { error: 'invalid_grant' }]],
    ['503', [503, {}]],
    ['bad', [200, { access_token: 'a\r\nb' }]],
    ['list', [200, [1]]],
  ]);
  return json(...(failures.get(flavour) ?? [200, { access_token: `idt.${marker}.${flavour}` }]));
}

function tokenPair(marker: string, flavour: string): UpstreamResponse {
  if (flavour === 'reset') return DIES_BEFORE;
  if (flavour === 'no' || flavour === 'refused') return json(401, { error: { message: 'no' } });
  const access = `acc.${marker}.ok`;
  const pair = { access_token: access, refresh_token: `ref.${marker}.ok`, expires_in: 900 };
  const bodies = new Map<string, unknown>([
    ['bad', { ...pair, refresh_token: '' }],
    ['list', [pair]],
    ['crlf', { ...pair, access_token: `${access}\r\nSet-Cookie: a=b` }],
    ['semi', { ...pair, access_token: `${access};,"%\\ok`, expires_in: '12.7' }],
    ['big', { ...pair, refresh_token: `${pair.refresh_token}${'b'.repeat(5000)}` }],
    ['late', { ...pair, expires_in: -1e308 }],
    ['again', { ...pair, access_token: `acc.${marker}.401`, expires_in: 1e308 }],
    ['data', { data: pair }],
  ]);
  return json(200, bodies.get(flavour) ?? pair);
}

function resource(
  { method, headers }: Call,
  marker: string,
  flavour: string,
  rich: RichResponse | undefined,
): UpstreamResponse {
  if (flavour === 'reset') return DIES_BEFORE;
  if (flavour === 'dies') return { dies: 'within' };
  const echo = { upstream: marker, error: { message: `${marker} \u0000<b>` } };
  const respond = (status: number, lines: readonly string[], body = '') => {
    const isEmpty = [204, 304].includes(status);
    return isEmpty
      ? response(status, lines, '', method)
      : response(status, [...lines, `Content-Length: ${body.length}`], body, method);
  };
  if (flavour === 'rich' && rich) {
    const host = headers.get('host') ?? '';
    const fill = (line: string) =>
      line.replaceAll('{host}', host).replaceAll('{port}', host.split(':')[1] ?? '');
    return respond(rich.status, rich.lines.map(fill), rich.status === 205 ? '' : JSON.stringify(echo));
  }
  if (flavour === 'long') return json(200, { ...echo, filling: 'f'.repeat(100_000) }, method);
  if (flavour === 'gzip')
    return respond(200, ['Content-Encoding: gzip'], gzipSync(JSON.stringify(echo)).toString('latin1'));
  if (flavour === 'odd')
    return respond(200, [
      ...[
        'Set-Cookie: a=\x80b',
        'Access-Control-Allow-Origin: *',
        'X-Generation-Id: \xff',
        'Content-Type: \xe9',
      ],
    ]);
  if (flavour === '204' || flavour === '304') return respond(Number(flavour), ['ETag: "a"']);
  return json(Number(flavour) || 200, echo, method);
}

function json(status: number, body: unknown, method = 'POST'): UpstreamResponse {
  const text = JSON.stringify(body);
  const length = `Content-Length: ${Buffer.byteLength(text)}`;
  return response(status, ['Content-Type: application/json', length], text, method);
}

function response(status: number, lines: readonly string[], body: string, method: string): UpstreamResponse {
  const head = `HTTP/1.1 ${status} Said\r\n${lines.join('\r\n')}\r\n\r\n`;
  const bytes = Buffer.from(method === 'HEAD' ? head : head + body, 'latin1');
  return { bytes, status, headers: lines.map(headerLine) };
}
