/** Requests that nobody would write: each part of one is mostly what the studio sends, and sometimes odd. */

import fc, { type Arbitrary } from 'fast-check';
import {
  FORWARDED_PATHS,
  NEARLY_PUBLIC_PATHS,
  PUBLIC_PATHS,
  REFUSED_PATHS,
} from '../../support/proxied-paths.ts';
import { ORIGIN } from '../../support/world.ts';
import { LINES as RESPONSE_LINES, STATUSES } from './upstream.ts';

/** Stands for the marker in what is generated: a request gets a new marker each time it is sent. */
export const PLACEHOLDER = 'mTHE0REQUEST0m';

const words = (text: string) => text.trim().split(/[ \n]+/);
/** Separated by ` | ` or by line ends without a carriage return. */
const items = (text: string) => text.split(/ \| |(?<!\r)\n */);
const pick = <Item>(list: readonly Item[]) => fc.constantFrom(...list);
/** One in eight is odd. It shrinks to the usual. */
const mostly = <Item>(usual: Arbitrary<Item>, odd: Arbitrary<Item>) =>
  fc.oneof({ withCrossShrink: true }, { weight: 7, arbitrary: usual }, { weight: 1, arbitrary: odd });

const METHODS = words('GET GET GET HEAD POST PUT PATCH DELETE');
const ODD_METHODS = [...words('OPTIONS TRACE CONNECT PROPFIND get GETT QUERY PRI M-SEARCH G\0T'), ''];
/** Bun closes the connection on a method that it does not know, and sometimes on a CONNECT, without a response. */
const KNOWN_METHODS = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|PROPFIND)$/;

const ROUTES = items(`GET /api/auth/session | GET /api/music/models | POST /api/auth/idp | POST /api/auth/idp
  POST /api/auth/logout | POST /api/music/generate | POST /api/music/generate | GET /api/health`);
const ODD_ROUTES =
  words(`* / // ? /api/health? /api/health# /API/health /x/api/health //api/health api/health studio.test:443
  /api/auth//session /api/music/..;/auth/session /api/auth/session%00 /a://b/api/health http://a/api/health file:///x
  /api/health?/api/auth/session /api/upstream/v1/${PLACEHOLDER}/api/health?/api/upstream/v1/me`).map(
    (each) => `GET ${each}`,
  );
const PREFIXES =
  words(`//api/upstream /API/upstream /api%2fupstream /api/upstream\\ http://evil.test /api/upstream@evil.test
  /api/upstream.evil.test /api/upstream:80 /api/health/../upstream HTTP://a@b/api/upstream`);
const PATHS = [`/v1/${PLACEHOLDER}`, `/v1/music/public/${PLACEHOLDER}_~.a/content`, '/v1/me'];
const ODD_PATHS = [
  ...[...FORWARDED_PATHS, ...PUBLIC_PATHS, ...NEARLY_PUBLIC_PATHS, ...Object.values(REFUSED_PATHS).flat()],
  // For a server that folds letters and dots.
  ...words('/v1/%f0%9d%90%9auth /v1/%c2%aauth/idp /v1/\xef\xbd\x81uth /v1/%E1%B5%83uth /v1/auth%e2%80%a4'),
];
const ENDS = words(
  `/ /. /.. /..;x /;x %2f..%2fx %00 # ? ?a=b&a=c ?/../.. ?q=%20%zz ?\xff ?"<> /${'s'.repeat(8000)}`,
);
const ODD_VERSIONS = ['HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'http/1.1', 'HTTP/1.1 ', ''];
/** Of some no address can be made, so that the gateway does not see an absolute URL. */
const HOSTS =
  items(`gateway.test:4175 | [::1]:80 | evil.test | x/api/health? | x/api/health# | x/api/health | /api/health
  a@b | a\\b | x:99999 | x:-1 | [::1 | %00 | \xff | a,b | http://x | .. | ? | # | x/../ | x?/api/health | a b | / |  | `);
const ORIGINS = items(`Origin: ${ORIGIN} | origin:${ORIGIN} | ORIGIN:\t ${ORIGIN}`);
const ALLOWED_ORIGIN = new RegExp(`^origin:[ \\t]*${ORIGIN.replaceAll('.', '\\.')}[ \\t]*$`, 'i');
/** None is allowed for a server that reads strictly; integration/relay/origin-rule has the look-alikes. */
const ODD_ORIGINS =
  items(`X: y | Origin: null | Origin: http://evil.test | Origin: ${ORIGIN}\x00 | Origin : ${ORIGIN}
  Origin: ${ORIGIN}\xa0 | Origin: \x0c${ORIGIN} | Origin\t: ${ORIGIN} | Origin: http://evil.test\r\nOrigin: ${ORIGIN}
  Origin: ${ORIGIN}\r\nOrigin: http://evil.test | Origin: ${ORIGIN}\r\norigin: ${ORIGIN} | Origin:\r\n ${ORIGIN}
  Origin: ${ORIGIN}\r\n x | Origin ${ORIGIN} | :Origin: ${ORIGIN} | X: a\rOrigin: ${ORIGIN} | X: a\x00Origin: ${ORIGIN}`);
const ODD_VALUES = [
  ...words(`" = a=b % %0d%0aSet-Cookie:%20x=y a%20b \x7f \xff\xfe
    {"a":1} null __proto__ %F0%9F %c0%af eyJhbGciOiJ..a`),
  ...['', '"a b"', 'a\tb', 'a\x00b', 'a\x01b', `x; svc_music_access=y; ${'o=x; '.repeat(3000)}`],
];
/** What a browser or a player may well send, and what it may not. */
const LINES = [
  ...items(`Accept: audio/*;q=0.9, */* | Accept-Encoding: gzip, deflate | Cache-Control: no-cache | Range: bytes=100-
    If-Range: "a" | If-None-Match: W/"a", "b" | Idempotency-Key: ${PLACEHOLDER} | Idempotency-Key: \xff\xfe
    traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 | tracestate: a=b | traceparent: 00-x
    Range: bytes=- | Accept-Language: sw;q=1e999,* | Accept: \x01 | X-Request-Id: {"level":"error"} | Expect: x
    X-Request-Id: ${'i'.repeat(65)} | Authorization: Bearer mine | X-Forwarded-For: 127.0.0.1 | Via: 1.1 x | : empty
    Connection: keep-alive, Origin | Connection: cookie | Connection: upgrade\r\nUpgrade: websocket | TE: trailers
    Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk | Expect: 100-continue | Trailer: Origin | Content-Encoding: gzip
    X-HTTP-Method-Override: DELETE | Host: second.test | no colon | X: \x00 | Set-Cookie: a=b`),
  ...[8000, 70_000].map((length) => `X-Long: ${'x'.repeat(length)}`),
  ...[300, 2000].map((count) => Array.from({ length: count }, (_, at) => `X-${at}: y`).join('\r\n')),
];
const TYPES = items(
  'text/plain | application/x-www-form-urlencoded | ; | \xff | multipart/form-data; boundary=b | ',
);
/** By the end of its code, identity provider and upstream know how to respond. */
const SIGN_INS = words('ok ok ok no crlf big reset refused').map(
  (end) => `{"code":"code.${PLACEHOLDER}.${end}","code_verifier":"${'v'.repeat(43)}"}`,
);
const GENERATIONS = words('30000 30000 30000 2999 3e400 -0 "30000"').map(
  (length) => `{"model":"sandbox-music-1","prompt":"Rain ${PLACEHOLDER}","music_length_ms":${length}}`,
);
const ODD_BODIES = [
  ...words('null [] "x" {"a" {}{} \x00 \xef\xbb\xbf{} \xff\xfe{\x00}\x00 {"__proto__":[]} code=a&code=b'),
  ...['', '['.repeat(20_000), 'f=1&'.repeat(1001), 'p'.repeat(2 * 1024 ** 2 + 1)],
];

/** The lines and the bytes of a body `@` of `#` bytes. */
type Framing = readonly [lines: string, bytes: string];
const CHUNKED = 'Transfer-Encoding: chunked';
const DECLARED: Framing = ['Content-Length: #', '@'];
const IN_CHUNKS: Framing = [CHUNKED, '$;ext=1\r\n@\r\n0\r\n\r\n'];
const SMUGGLED = 'GET /api/upstream/v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
/** Length and bytes contradict each other, which request smuggling relies on. */
const LIES: readonly Framing[] = [
  ...items(`X: y | Content-Length: #\r\nContent-Length: #1 | Content-Length: #, # | Content-Length: #\r\n${CHUNKED}
    Content-Length: 1# | Content-Length: -1 | Content-Length: +1 | Content-Length: 0x1 | Content-Length: 4294967296
    Content-Length: | Content-Length: 1 1 | ${CHUNKED}, chunked | Transfer-Encoding: identity | Content-Length: 1
    Transfer-Encoding: \x0bchunked | Transfer-Encoding:\r\n chunked | Content-Length: 5\r\n${CHUNKED}`).map(
    (lines) => [lines, '@'] as const,
  ),
  ['Content-Length: 0', SMUGGLED],
  [`Content-Length: 5\r\n${CHUNKED}`, `0\r\n\r\n${SMUGGLED}`],
  [CHUNKED, `0\r\nOrigin: ${ORIGIN}\r\n\r\n`],
  [CHUNKED, 'ffffffffffffffff1\r\nx\r\n0\r\n\r\n'],
  [CHUNKED, '1\nx\n0\n\n'],
];

const ACCESS = fc.oneof(
  pick(words('200-0 200-0 401-0 401-0 long gzip reset dies')),
  fc.tuple(pick(STATUSES), fc.nat(RESPONSE_LINES.length - 1)).map((each) => each.join('-')),
);
const REFRESH = pick(words('ok ok ok no crlf big reset again'));
/** A cookie whose token tells the upstream how to respond; one in five requests has none. */
const cookie = (name: string, kind: string, ends: Arbitrary<string>) => {
  const token = ends.map((end) => `${kind}.${PLACEHOLDER}.${end}`);
  const field = mostly(token, pick(ODD_VALUES)).map((value) => [`${name}=${value}`]);
  return fc.option(field, { freq: 4, nil: [] });
};
const proxied = fc
  .tuple(
    pick(METHODS),
    mostly(fc.constant('/api/upstream'), pick(PREFIXES)),
    mostly(pick(PATHS), pick(ODD_PATHS)),
    mostly(fc.constant(''), pick(ENDS)),
  )
  .map(([method, ...parts]) => `${method} ${parts.join('')}`);
const request = fc
  .record({
    aimed: fc.oneof(mostly(pick(ROUTES), pick(ODD_ROUTES)), proxied),
    odd: mostly(fc.constant(undefined), pick([...METHODS, ...ODD_METHODS])),
    version: fc.oneof({ weight: 40, arbitrary: fc.constant('HTTP/1.1') }, pick(ODD_VERSIONS)),
    host: mostly(fc.constant('gateway.test'), pick(HOSTS)),
    origin: mostly(pick(ORIGINS), pick(ODD_ORIGINS)),
    access: cookie('svc_music_access', 'acc', ACCESS),
    refresh: cookie('svc_music_refresh', 'ref', REFRESH),
    lines: fc.array(pick(LINES), { maxLength: 2 }),
    oddBody: mostly(fc.constant(undefined), pick(ODD_BODIES)),
    signIn: pick(SIGN_INS),
    generation: pick(GENERATIONS),
    type: mostly(fc.constant('application/json'), pick(TYPES)),
    frame: mostly(pick([DECLARED, DECLARED, IN_CHUNKS]), pick(LIES)),
    always: mostly(fc.constant(false), fc.constant(true)),
  })
  .map(({ aimed, odd, version, host, origin, access, refresh, lines, frame, ...parts }) => {
    const space = aimed.indexOf(' ');
    const method = odd ?? aimed.slice(0, space);
    const body = parts.oddBody ?? (aimed.includes('/auth/') ? parts.signIn : parts.generation);
    const [lengths, bytes] = body === '' && frame === IN_CHUNKS ? DECLARED : frame;
    const hasBody = parts.always || /^P[OUA]/.test(method);
    const cookies = [...access, ...refresh].join('; ');
    const all = [`Host: ${host}`, origin, ...lines, ...(cookies ? [`Cookie: ${cookies}`] : [])];
    if (hasBody) all.push(`Content-Type: ${parts.type}`, lengths.replaceAll('#', String(body.length)));
    const head = all.join('\r\n');
    const sent = bytes.replace('$', body.length.toString(16)).replace('@', () => body);
    const origins = head.split('\r\n').filter((line) => /^origin[ \t]*:/i.test(line));
    return {
      /** One character per byte, with the placeholder of its marker. */
      bytes: `${method}${aimed.slice(space)} ${version}\r\n${head}\r\n\r\n${hasBody ? sent : ''}`,
      /** Whether it is complete, with a length that is right: then it must get a response. */
      isFramed: KNOWN_METHODS.test(method) && !(hasBody && LIES.includes(frame)),
      /** Whether its origin is allowed, so that it may reach the upstream. */
      mayPass: origins.length === 1 && origins.every((line) => ALLOWED_ORIGIN.test(line)),
    };
  });

/** The requests of each connection, which are sent one after another. */
const requests = fc.array(request, { minLength: 1, maxLength: 5 });
export const batch = fc.array(requests, { maxLength: 128, size: 'max' });
export type FuzzRequest = typeof request extends Arbitrary<infer Value> ? Value : never;
