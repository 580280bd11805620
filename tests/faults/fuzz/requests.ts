/** Requests that nobody would write: each part of one is mostly what the studio sends, and sometimes odd. */

import fc, { type Arbitrary } from 'fast-check';
import * as proxiedPaths from '../../support/proxied-paths.ts';
import { ORIGIN } from '../../support/world.ts';
import { STATUSES } from './upstream.ts';

/** Stands for the marker in what is generated: a request gets a new marker each time it is sent. */
export const PLACEHOLDER = 'mTHE0REQUEST0m';

/** Separated by ` | ` or by line ends without a carriage return. */
const items = (texts: TemplateStringsArray, ...values: readonly string[]) =>
  String.raw({ raw: texts }, ...values).split(/ \| |(?<!\r)\n */);
const pick = (list: readonly string[]) => fc.constantFrom(...list);
/** One in eight is odd. It shrinks to the usual. */
const mostly = (usual: Arbitrary<string>, odd: readonly string[]) =>
  fc.oneof({ withCrossShrink: true }, { weight: 7, arbitrary: usual }, { weight: 1, arbitrary: pick(odd) });

const ROUTES = items`GET /api/auth/session | GET /api/music/models | POST /api/auth/idp | POST /api/auth/idp
  POST /api/auth/logout | POST /api/music/generate | POST /api/music/generate | GET /api/health`;
const ODD_ROUTES = items`GET * | GET // | GET /api/health? | GET /x/api/health | GET //api/health | GET api/health
  GET /a://b/api/health | GET http://a/api/health | GET /api/health?/api/auth/session
  GET /api/upstream/v1/${PLACEHOLDER}/api/health?/api/upstream/v1/me`;
const ODD_PREFIXES = items`//api/upstream | /API/upstream | /api%2fupstream | /api/upstream\\ | http://evil.test
  /api/upstream@evil.test | /api/upstream.evil.test | /api/health/../upstream | HTTP://a@b/api/upstream`;
const ODD_PATHS = Object.values(proxiedPaths).flatMap((paths) => Object.values(paths).flat());
/** Some servers drop them. */
const UNSEEN = items`%E2%80%8D | %E2%80%8C | %C2%AD | %E2%80%8E | %25E2%2580%258D | %EF%B8%8F | %EE%80%80 | %F3%A0%81%A7`;
const ODD_ENDS = items`/ | /. | /.. | /..;x | /;x | %2f..%2fx | %00 | # | ? | ?a=b&a=c | ?/../.. | ?q=%20%zz | ?\xff`;
const proxied = fc.tuple(
  pick(items`GET | GET | GET | HEAD | POST | PUT | PATCH | DELETE`),
  mostly(pick(['/api/upstream']), ODD_PREFIXES),
  mostly(pick([`/v1/${PLACEHOLDER}`, `/v1/music/public/${PLACEHOLDER}_~.a/content`, '/v1/me']), ODD_PATHS),
  mostly(pick(['']), ODD_ENDS),
  mostly(pick(['']), UNSEEN),
  fc.nat(40),
);
/** Not one that Bun does not know, nor CONNECT: they may end the connection without a response. */
const ODD_METHODS = ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'];
/** Of some no address can be made, so that the gateway does not see an absolute URL. */
const ODD_HOSTS = items`[::1]:80 | evil.test | x/api/health? | x/api/health# | x/api/health | /api/health | a@b | a\\b
  x:99999 | [::1 | %00 | \xff | http://x | .. | ? | x/../ | a b | `;
const ORIGINS = items`Origin: ${ORIGIN} | origin:${ORIGIN} | ORIGIN:\t ${ORIGIN}`;
/** None is allowed for a server that reads strictly; integration/relay/origin-rule has the look-alikes. */
const ODD_ORIGINS = items`X: y | Origin: null | Origin: ${ORIGIN}\x00 | Origin : ${ORIGIN} | Origin: ${ORIGIN}\xa0
  Origin: \x0c${ORIGIN} | Origin: http://evil.test\r\nOrigin: ${ORIGIN} | Origin: ${ORIGIN}\r\norigin: ${ORIGIN}
  Origin: ${ORIGIN}\r\nOrigin: http://evil.test | Origin:\r\n ${ORIGIN} | Origin: ${ORIGIN}\r\n x
  :Origin: ${ORIGIN} | X: a\rOrigin: ${ORIGIN} | X: a\x00Origin: ${ORIGIN}`;
/** What a browser or a player may well send, and what it may not. */
const LINES = items`Accept: audio/*;q=0.9, */* | Accept-Encoding: gzip, deflate | Range: bytes=100- | no colon
  If-None-Match: W/"a", "b" | Idempotency-Key: ${PLACEHOLDER} | Idempotency-Key: \xff\xfe | Accept: \x7f | X: \x00
  X-Request-Id: {"level":"error"} | X-Request-Id: ${'i'.repeat(65)} | Authorization: Bearer mine | : empty | Expect: x
  X-Forwarded-For: 127.0.0.1 | Connection: keep-alive, Origin | Connection: cookie | TE: trailers | Trailer: Origin
  Connection: upgrade\r\nUpgrade: websocket | Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk | traceparent: x | Set-Cookie: a=b
  Via: 1.1 \xff | Host: second.test | X-Long: ${'x'.repeat(8000)} | ${'X: y\r\n'.repeat(300)}X: z`;
const ODD_TOKENS = items`" | = | a=b | % | %0d%0aSet-Cookie:%20x=y | a b | \x7f | \xff\xfe | {"a":1} | null | __proto__
  %c0%af | "a b" | a\tb | a\x00b |  | x; svc_music_access=y; ${'o=x; '.repeat(3000)}`;
/** By the end of a token or a code, identity provider and upstream know how to respond. */
const ENDS = ['ok', 'ok', 'ok', 'no', 'crlf', 'reset', 'again'];
const cookie = (name: string, start: string, ends: readonly string[]) => {
  const tokens = ends.map((end) => `${start}.${PLACEHOLDER}.${end}`);
  return mostly(pick(['', '', ...tokens]), ODD_TOKENS).map((token) => token && `${name}=${token}`);
};

const bodies = ENDS.map(
  (end) => `{"code":"code.${PLACEHOLDER}.${end}","code_verifier":"${'v'.repeat(43)}",
  "model":"sandbox-music-1","prompt":"Rain","music_length_ms":30000}`,
);
const ODD_BODIES = items`null | [] | {"a" | {}{} | \x00 | \xff\xfe{\x00}\x00 | {"__proto__":[]} | ${'['.repeat(20_000)}`;
const CHUNKED = 'Transfer-Encoding: chunked';
/** Lengths that contradict themselves, on which request smuggling relies: Bun must refuse the request. */
const LIES = items`Content-Length: 5, 5 | Content-Length: 5\r\nContent-Length: 51 | Content-Length: +5
  Content-Length: 5\r\n${CHUNKED} | ${CHUNKED}, chunked | Transfer-Encoding: identity | Transfer-Encoding:\r\n chunked
  Transfer-Encoding : chunked | Transfer-Encoding: \x0bchunked`;
/** Five bytes, or the last chunk, and then a request of its own. */
const SMUGGLED = `0\r\n\r\nGET /api/upstream/v1/${PLACEHOLDER} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\n\r\n`;

const request = fc
  .record({
    start: fc.oneof(
      mostly(pick(ROUTES), ODD_ROUTES),
      proxied.map(([method, prefix, path, end, unseen, at]) => {
        const target = path + end;
        return `${method} ${prefix}${target.slice(0, at)}${unseen}${target.slice(at)}`;
      }),
    ),
    oddMethod: mostly(pick(['']), ODD_METHODS),
    host: mostly(pick(['gateway.test']), ODD_HOSTS),
    origin: mostly(pick(ORIGINS), ODD_ORIGINS),
    lines: fc.array(pick(LINES), { maxLength: 2 }),
    access: cookie('svc_music_access', 'acc', STATUSES),
    refresh: cookie('svc_music_refresh', 'ref', ENDS),
    content: pick(bodies),
    oddBody: mostly(pick(['']), ODD_BODIES),
    isChunked: fc.boolean(),
    lie: mostly(pick(['']), LIES),
  })
  .map(({ start, oddMethod, host, origin, lines, access, refresh, content, oddBody, isChunked, lie }) => {
    const requestLine = `${oddMethod ? start.replace(/^\w+/, oddMethod) : start} HTTP/1.1`;
    const body = oddBody || (requestLine.startsWith('P') ? content : '');
    const chunks = `${body.length.toString(16)};ext=1\r\n${body}\r\n0\r\n\r\n`;
    const framed = isChunked && body ? [CHUNKED, chunks] : [`Content-Length: ${body.length}`, body];
    const [length, sent] = lie ? [lie, SMUGGLED] : framed;
    const head = [requestLine, `Host: ${host}`, origin, ...lines, `Cookie: ${access}; ${refresh}`];
    return {
      /** One character per byte, with the placeholder of its marker. */
      bytes: [...head, 'Content-Type: application/json', length, '', sent].join('\r\n'),
      /** Otherwise it must be refused before it reaches the upstream. */
      mayPass: ORIGINS.includes(origin) && lie === '',
    };
  });

/** The requests of each connection, which are sent one after another. */
const requests = fc.array(request, { minLength: 1, maxLength: 5 });
export const batch = fc.array(requests, { maxLength: 128, size: 'max' });
export type FuzzRequest = typeof request extends Arbitrary<infer Value> ? Value : never;
