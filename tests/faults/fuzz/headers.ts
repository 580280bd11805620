/** Header lines: host, origin, cookies, and everything that a client may or should not send. */

import fc, { type Arbitrary } from 'fast-check';
import { ORIGIN } from '../../support/world.ts';
import { few, items, maybe, PLACEHOLDER, pick, rarely, words } from './choices.ts';

/** What a browser or a player may well send. */
const RELAYED_LINES =
  items(`Accept: application/json | Accept: audio/*;q=0.9, */* | Accept-Language: sw, en;q=0.5
  Accept-Encoding: br | Accept-Encoding: gzip, deflate | Cache-Control: no-cache | Pragma: no-cache
  Content-Encoding: identity | Range: bytes=0-99 | Range: bytes=100- | If-Range: "a"
  If-None-Match: W/"a", "b" | If-Match: "a" | If-Modified-Since: Tue, 01 Sep 2026 10:00:00 GMT
  If-Unmodified-Since: Tue, 01 Sep 2026 10:00:00 GMT
  traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 | tracestate: a=b`);
const ODD_LINES = items(`Idempotency-Key: a, b | Idempotency-Key: \xff\xfe | Idempotency-Key: a\tb
  If-Match: a\x7fb | Range: bytes=- | Range: x | Accept-Language: ;q= | Accept-Language: sw;q=1e999,*
  Accept-Language: ,,,;;; | Accept: \x01 | If-Match: * | If-Range: x | traceparent: 00-x | Idempotency-Key:
  X-Request-Id: a b | X-Request-Id: ${'i'.repeat(65)} | X-Request-Id: {"level":"error"}
  Authorization: Bearer mine | Authorization: Basic eDp5 | Proxy-Authorization: x
  X-Forwarded-Host: evil.test | X-Forwarded-For: 127.0.0.1 | X-Original-URL: /api/health
  X-Rewrite-URL: /v1/admin | X-HTTP-Method-Override: DELETE | Forwarded: host=evil.test | Via: 1.1 x
  Connection: close | Connection: keep-alive, Origin | Connection: cookie
  Connection: upgrade\r\nUpgrade: websocket | Keep-Alive: x | TE: trailers
  Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk | Expect: 100-continue | Expect: x | Trailer: Origin
  Max-Forwards: 0 | Content-Encoding: gzip | Access-Control-Request-Method: POST
  Access-Control-Request-Headers: x\xff | Host: second.test | : empty | no colon | X: \x00
  __proto__: x | constructor: x | Content-Disposition: x | Set-Cookie: a=b
  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13`);
const CONNECTION_OPTIONS = [
  ...words(
    'keep-alive close X-Absent "range" range;x host content-length transfer-encoding authorization via',
  ),
  ...words('x-request-id traceparent accept accept-encoding user-agent *'),
  '',
];

const HOSTS = [
  ...words('a gateway.test:4175 127.0.0.1 [::1]:80 evil.test x/api/health? x/api/health# x/api/health'),
  ...words('/api/health a@b a\\b x:99999 x:-1 [::1 %00 \xff a,b http://x .. ? # x/../ x?/api/health'),
  ...['', ' ', 'a b', `${'h'.repeat(300)}.test`],
];
const ODD_ORIGINS = [
  ...words(`null * constructor __proto__ file:// studio.test ${ORIGIN}/ ${ORIGIN}:80 ${ORIGIN}. ${ORIGIN},`),
  ...words(`${ORIGIN}.evil.test HTTP://studio.test http://STUDIO.test https://studio.test http://studio.tes`),
  ...words(
    `http://xstudio.test ${ORIGIN}@evil.test ${ORIGIN},${ORIGIN} "${ORIGIN}" ${ORIGIN}\x0b ${ORIGIN}?`,
  ),
  ...[`${ORIGIN}, http://evil.test`, `http://evil.test, ${ORIGIN}`, `${ORIGIN} http://evil.test`, ''],
  ...[`\xa0${ORIGIN}`, `${ORIGIN}\x00`, `${ORIGIN}\xa0`, `\x0c${ORIGIN}`, `${ORIGIN}\\`, '\xff'],
  ...words(
    `${ORIGIN}# http://studio%2etest http://evil.test http://127.0.0.1 http://gateway.test http://[::1]`,
  ),
];
const ODD_ORIGIN_LINES = items(`Origin : ${ORIGIN} | Origin\t: ${ORIGIN} | X-Origin: ${ORIGIN}
  Origin\x00: ${ORIGIN} | Referer: ${ORIGIN}/ | Origin: http://evil.test\r\nOrigin: ${ORIGIN}
  Origin: ${ORIGIN}\r\nOrigin: http://evil.test | Origin: ${ORIGIN}\r\norigin: ${ORIGIN}
  Origin:\r\n ${ORIGIN} | Origin: ${ORIGIN}\r\n x | Origin ${ORIGIN} | :Origin: ${ORIGIN}
  Origin;: ${ORIGIN} | Sec-Fetch-Site: same-origin | X: a\rOrigin: ${ORIGIN} | X: a\x00Origin: ${ORIGIN}
  X-Forwarded-Origin: ${ORIGIN} | Access-Control-Allow-Origin: ${ORIGIN}`);

/** How the upstream responds to a token that ends so. Most are good, so that much of the rest is reached. */
const ACCESS_FLAVOURS = words('ok rich rich');
const BAD_ACCESS_FLAVOURS = words('401 401 401 401 401 ok 404 409 503 302 204 304 long gzip odd reset dies');
const REFRESH_FLAVOURS = words('ok data no bad list crlf semi big late reset again');
const HOSTILE_VALUES = [
  ...words('" = == a=b % %zz %00 %0d%0aSet-Cookie:%20x=y a%20b \x7f \xff\xfe \xc3\xa9 {"a":1} [1] null'),
  ...words('undefined true 12345 1e999 __proto__ constructor %F0%9F%8E%B5 %c0%af j:{"a":1} s:x.y'),
  ...words('eyJhbGciOiJkaXIifQ..a.b.c eyJhbGciOiJub25lIn0.e30. $Version a\x00b a\x01b .. <script>'),
  ...['', '"a b"', 'a\tb', "' or 1=1"],
];
const OTHER_COOKIES = [
  ...words('a=b __proto__=x constructor=y x = =;= ;; $Path=/ \xff=\xff svc_music=1 SVC_MUSIC_ACCESS=x'),
  ...[4096, 15_500, 40_000].map((length) => `pad=${'p'.repeat(length)}`),
  'o=x; '.repeat(3000),
];

/**
 * Every line but the ones that say where the body ends.
 *
 * @param isForbidden the allowed origin is never sent
 * @param host how likely the host is odd
 */
export function headerLines(oddity: number, isForbidden: boolean, host: number) {
  const many = pick([60, 300, 2000]).map((count) => Array.from({ length: count }, (_, at) => `X-${at}: y`));
  const long = pick([8000, 17_000, 70_000]).map((length) => [`X-Long: ${'x'.repeat(length)}`]);
  const origin = fc
    .tuple(pick(words('Origin Origin origin ORIGIN')), pick([' ', ' ', '', '\t ']))
    .map(([name, space]) => [`${name}:${space}${ORIGIN}`]);
  const odd = fc.oneof(
    pick(ODD_ORIGINS).map((each) => [`Origin: ${each}`]),
    maybe(0.5, pick(ODD_ORIGIN_LINES)),
  );
  const parts = fc
    .tuple(
      rarely(oddity / 20, fc.constant([]), hostLine(host)),
      rarely<readonly string[]>(isForbidden ? 1 : oddity / 2, odd, origin),
      cookieLines(oddity),
      maybe(0.3, fc.constant(`Idempotency-Key: ${PLACEHOLDER}`)),
      few(0.3, pick(RELAYED_LINES)),
      few(oddity, pick(ODD_LINES)),
      rarely(oddity / 25, fc.oneof(many, long), fc.constant<string[]>([])),
    )
    .map((each) => each.flat());
  return fc
    .tuple(parts, maybe(oddity, connection(CONNECTION_OPTIONS)), fc.nat(99))
    .map(([lines, [nameConnection], at]) => {
      const all = nameConnection ? [...lines, nameConnection(lines)] : lines;
      // In any order, once there is something odd.
      const start = oddity > 0 && all.length > 0 ? at % all.length : 0;
      return [...all.slice(start), ...all.slice(0, start)];
    });
}

/** A `Connection` line, which ends at this hop what it names: some of the headers that are there, and some options. */
export function connection(options: readonly string[]): Arbitrary<(lines: readonly string[]) => string> {
  const spell = pick([
    (name: string) => name,
    (name: string) => name.toUpperCase(),
    (name: string) => ` ${name}\t`,
  ]);
  const members = fc.array(fc.tuple(fc.nat(99), spell, maybe(0.35, pick(options))), {
    minLength: 1,
    maxLength: 4,
  });
  return fc
    .tuple(pick(words('Connection connection')), members, pick([', ', ',', ' ,\t']))
    .map(([header, members, separator]) => (lines) => {
      // There may be no lines, so `Host` is always among the names.
      const names = [...lines.map((line) => line.split(':', 1)[0] ?? ''), 'Host'];
      const written = members.map(([at, spell, [option]]) => option ?? spell(names[at % names.length] ?? ''));
      return `${header}: ${written.join(separator)}`;
    });
}

function hostLine(odd: number): Arbitrary<readonly string[]> {
  // Of the first ones no address can be made, so that the gateway does not see an absolute URL.
  const hosts = rarely(0.6, pick(HOSTS), pick(['', 'a b', '/']));
  return rarely(odd, hosts, fc.constant('gateway.test')).map((host) => [`Host: ${host}`]);
}

function cookieLines(oddity: number): Arbitrary<readonly string[]> {
  const other = maybe(oddity / 2, pick(OTHER_COOKIES));
  const twins = maybe(oddity / 3, session(oddity)).map((each) => each.flat());
  const parts = fc.tuple(other, session(oddity), other, twins).map((each) => each.flat());
  const style = fc.tuple(
    rarely(oddity / 5, fc.constant('cOOkie'), fc.constant('Cookie')),
    rarely(oddity / 5, pick([';', '\r\nCookie: ']), fc.constant('; ')),
  );
  return fc.tuple(maybe(0.88, parts), style).map(([[each], [name, separator]]) => {
    return each ? [`${name}: ${each.join(separator)}`] : [];
  });
}

function session(oddity: number): Arbitrary<readonly string[]> {
  const value = (kind: string, flavour: Arbitrary<string>) => {
    const token = flavour.map((each) => `${kind}.${PLACEHOLDER}.${each}`);
    return rarely(oddity / 2, pick(HOSTILE_VALUES), token);
  };
  const access = value('acc', rarely(0.3, pick(BAD_ACCESS_FLAVOURS), pick(ACCESS_FLAVOURS)));
  const refresh = value('ref', pick(REFRESH_FLAVOURS));
  return fc
    .tuple(pick(words('access both both both refresh')), access, refresh)
    .map(([has, access, refresh]) => [
      ...(has === 'refresh' ? [] : [`svc_music_access=${access}`]),
      ...(has === 'access' ? [] : [`svc_music_refresh=${refresh}`]),
    ]);
}
