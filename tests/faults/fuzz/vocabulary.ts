/** What the parts of a request can be: the usual, and what two servers may read differently. */

import {
  FORWARDED_PATHS,
  NEARLY_PUBLIC_PATHS,
  PUBLIC_PATHS,
  REFUSED_PATHS,
  RESOLVED_PATHS,
} from '../../support/proxied-paths.ts';
import { ORIGIN } from '../../support/world.ts';
import { items, PLACEHOLDER, words } from './choices.ts';

export const METHODS = words('GET GET GET HEAD POST PUT PATCH DELETE');
export const ODD_METHODS = [...words('OPTIONS TRACE CONNECT PROPFIND get GETT QUERY PRI M-SEARCH G\0T'), ''];
export const VERSIONS = ['HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/0.9', 'http/1.1', 'HTTP/1.1 ', ''];

export const PROXY = '/api/upstream';
/** With their methods. */
export const ROUTES = items(`GET /api/auth/session | GET /api/music/models | POST /api/auth/idp
  POST /api/auth/idp | POST /api/auth/logout | POST /api/music/generate | POST /api/music/generate
  POST /api/music/generate | GET /api/health`);
export const ODD_TARGETS = [
  ...words('* / // ? /api /api/health/ /api/health? /api/health# /API/health /x/api/health //api/health'),
  ...words('/api/auth/idp/ /api/auth//session /api/music/..;/auth/session /api/auth/session%00 /__proto__'),
  ...words('/a://b/api/health /api/health?/api/auth/session api/health studio.test:443 /api/auth/session;x'),
  // This resembles the one path without an origin rule, in case only a part of it is compared.
  ...['', `${PROXY}/v1`].map((path) => `${path}/${PLACEHOLDER}/api/health?/api/upstream/v1/me`),
];
export const ODD_STARTS = words(
  'http://gateway.test https://evil.test HTTP://a@b file:///x ftp://x/api/health? ://',
);
export const ODD_PREFIXES = words(`/api//upstream //api/upstream /API/upstream /api%2fupstream ${PROXY}\\
  ${PROXY}@evil.test ${PROXY}.evil.test ${PROXY}:80 /api/health/../upstream /api/health%2f..%2fupstream`);
export const PATHS = [
  ...Array(8)
    .fill([`/v1/${PLACEHOLDER}`, `/v1/music/public/${PLACEHOLDER}_~.a/content`])
    .flat(),
  ...words(`/v1/me/${PLACEHOLDER} /v1/music/public/${PLACEHOLDER} /v1/music/creations/${PLACEHOLDER}`),
  ...[...FORWARDED_PATHS, ...PUBLIC_PATHS, ...NEARLY_PUBLIC_PATHS].filter((_, index) => index % 4 === 0),
];
/** By the rule that each of them tests. */
export const ODD_PATHS: readonly (readonly string[])[] = [
  ...Object.values(REFUSED_PATHS),
  RESOLVED_PATHS,
  // The token endpoints, for a server that folds letters, drops whitespace, dots and empty segments, or decodes.
  words(`/v1/AUTH /v1/Auth/idp /v1/%20auth /v1/auth%20/idp /v1/auth./refresh /v1//auth /v1/%61uth /v1/auth;x/idp
    /v1/%f0%9d%90%9auth /v1/%c2%aauth/idp /v1/\xef\xbd\x81uth /v1/%E1%B5%83uth /v1/auth%e2%80%a4`),
];
/** Appended to a path, so that what is odd also stands in the middle. */
export const ENDS = [
  ...words('/ /x /. /.. /..;x /;x ;x %2f..%2fx %00 # ? ?a=b&a=c ?/../.. ?q=%20%zz ?\xff ?"<>'),
  ...[300, 8000].map((length) => `/${'s'.repeat(length)}`),
];

export const HOSTS = [
  ...words('a gateway.test:4175 127.0.0.1 [::1]:80 evil.test x/api/health? x/api/health# x/api/health'),
  ...words('/api/health a@b a\\b x:99999 x:-1 [::1 %00 \xff a,b http://x .. ? # x/../ x?/api/health'),
  // Of these no address can be made, so that the gateway does not see an absolute URL.
  ...['', '', '', 'a b', 'a b', '/', '/', `${'h'.repeat(300)}.test`],
].map((host) => `Host: ${host}`);
export const ORIGINS = items(`Origin: ${ORIGIN} | origin:${ORIGIN} | ORIGIN:\t ${ORIGIN}`);
/** Not the allowed one for a server that reads strictly; integration/relay/origin-rule has the look-alikes. */
export const ODD_ORIGINS = items(`Origin: null | Origin: http://evil.test | Origin: ${ORIGIN}\x00
  Origin: ${ORIGIN}\xa0 | Origin: \x0c${ORIGIN} | Origin: ${ORIGIN}\\ | Origin: ${ORIGIN}. | Origin: ${ORIGIN}/
  Origin : ${ORIGIN} | Origin\t: ${ORIGIN} | X-Origin: ${ORIGIN} | Origin\x00: ${ORIGIN} | Referer: ${ORIGIN}/
  Origin: http://evil.test\r\nOrigin: ${ORIGIN} | Origin: ${ORIGIN}\r\nOrigin: http://evil.test
  Origin: ${ORIGIN}\r\norigin: ${ORIGIN} | Origin:\r\n ${ORIGIN} | Origin: ${ORIGIN}\r\n x | Origin ${ORIGIN}
  :Origin: ${ORIGIN} | Origin;: ${ORIGIN} | Sec-Fetch-Site: same-origin | X: a\rOrigin: ${ORIGIN}
  X: a\x00Origin: ${ORIGIN} | X-Forwarded-Origin: ${ORIGIN} | Access-Control-Allow-Origin: ${ORIGIN}`);

/** How the upstream responds to a token that ends so. Most are good, so that much of the rest is reached. */
const token = (kind: string) => (flavour: string) => `${kind}.${PLACEHOLDER}.${flavour}`;
export const ACCESS = words(
  'ok ok ok rich rich rich rich 401 401 404 409 503 204 304 long gzip odd reset dies',
).map(token('acc'));
export const REFRESH = words('ok ok no list crlf semi big reset again').map(token('ref'));
export const ODD_TOKENS = [
  ...words(
    '" = == a=b % %zz %00 %0d%0aSet-Cookie:%20x=y a%20b \x7f \xff\xfe \xc3\xa9 {"a":1} [1] null 1e999',
  ),
  ...words('__proto__ %F0%9F%8E%B5 %c0%af eyJhbGciOiJkaXIifQ..a.b.c $Version a\x00b a\x01b .. <script>'),
  '',
  '"a b"',
  'a\tb',
  "' or 1=1",
];
const TWINS = ['svc_music_access=x', `svc_music_refresh=${token('ref')('ok')}`];
export const OTHER_COOKIES = [
  ...words('a=b __proto__=x x = =;= ;; $Path=/ \xff=\xff SVC_MUSIC_ACCESS=x'),
  ...[...TWINS, ...TWINS, ...TWINS, `pad=${'p'.repeat(40_000)}`, 'o=x; '.repeat(3000)],
];

/** What a browser or a player may well send. */
export const LINES =
  items(`Accept: application/json | Accept: audio/*;q=0.9, */* | Accept-Language: sw, en;q=0.5
  Accept-Encoding: br | Accept-Encoding: gzip, deflate | Cache-Control: no-cache | Pragma: no-cache
  Content-Encoding: identity | Range: bytes=0-99 | Range: bytes=100- | If-Range: "a" | If-Match: "a"
  If-None-Match: W/"a", "b" | If-Modified-Since: Tue, 01 Sep 2026 10:00:00 GMT
  If-Unmodified-Since: Tue, 01 Sep 2026 10:00:00 GMT | Idempotency-Key: ${PLACEHOLDER}
  traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 | tracestate: a=b`);
export const ODD_LINES = [
  ...items(`Idempotency-Key: a, b | Idempotency-Key: \xff\xfe | Idempotency-Key: a\tb | If-Match: a\x7fb
  Range: bytes=- | Accept-Language: sw;q=1e999,* | Accept: \x01 | If-Range: x | traceparent: 00-x
  Idempotency-Key: | X-Request-Id: a b | X-Request-Id: {"level":"error"} | X-Request-Id: ${'i'.repeat(65)}
  Authorization: Bearer mine | Proxy-Authorization: x | X-Forwarded-Host: evil.test | X-Forwarded-For: 127.0.0.1
  X-Original-URL: /api/health | X-HTTP-Method-Override: DELETE | Forwarded: host=evil.test | Via: 1.1 x
  Connection: keep-alive, Origin | Connection: cookie | Connection: upgrade\r\nUpgrade: websocket
  Keep-Alive: x | TE: trailers | Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk | Expect: 100-continue | Expect: x
  Trailer: Origin | Max-Forwards: 0 | Content-Encoding: gzip | Access-Control-Request-Headers: x\xff
  Host: second.test | : empty | no colon | X: \x00 | __proto__: x | Content-Disposition: x | Set-Cookie: a=b
  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13`),
  ...[8000, 17_000, 70_000].map((length) => `X-Long: ${'x'.repeat(length)}`),
  ...[60, 300, 2000].map((count) => Array.from({ length: count }, (_, at) => `X-${at}: y`).join('\r\n')),
];
export const ODD_TYPES = [
  ...words('text/plain application/x-www-form-urlencoded application/jsonx ; \xff APPLICATION/JSON'),
  '',
  'multipart/form-data; boundary=b',
  'application/json; charset=utf-16',
];
/** By the end of its code the recording identity provider and upstream know how to respond. */
export const SIGN_INS = words('ok ok ok no bad list crlf semi big reset refused').map(
  (end) => `{"code":"${token('code')(end)}","code_verifier":"${'v'.repeat(43)}"}`,
);
export const GENERATIONS = words(
  '30000 30000 30000 3000 600000 2999 600001 30000.0 3e400 -0 "30000" 30000.5',
).map((length) => `{"model":"sandbox-music-1","prompt":"Rain ${PLACEHOLDER}","music_length_ms":${length}}`);
/** unit/request-fields has them with their statuses. */
export const ODD_BODIES = [
  ...words('null [] "x" {"a" {}{} \x00 \xef\xbb\xbf{} \xff\xfe{\x00}\x00 {"__proto__":[]} code=a&code=b'),
  '',
  '['.repeat(20_000),
  `[${'0,'.repeat(20_000)}0]`,
  'f=1&'.repeat(1001),
  'p'.repeat(2 * 1024 ** 2 + 1),
];
/** What request smuggling relies on, in the place of the right length. */
export const ODD_LENGTHS =
  items(`Content-Length: -1 | Content-Length: +1 | Content-Length: 0x1 | Content-Length:
  Content-Length: 99999999999999999999 | Content-Length: 4294967296 | Content-Length: 007 | Content-Length: 1 1
  Transfer-Encoding: identity | Transfer-Encoding: chunked, chunked | Transfer-Encoding: gzip, chunked
  Transfer-Encoding: \x0bchunked | Transfer-Encoding:\r\n chunked | Content-Length: 5\r\nTransfer-Encoding: chunked`);
