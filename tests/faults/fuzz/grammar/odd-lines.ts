/** Origins, hosts and header lines that no browser sends. */

import { ORIGIN } from '../../../support/world.ts';
import { items, words } from './choices.ts';

export const ODD_ORIGINS = [
  ...words(`null * constructor __proto__ file:// studio.test ${ORIGIN}/ ${ORIGIN}:80 ${ORIGIN}. ${ORIGIN},`),
  ...words(`${ORIGIN}.evil.test HTTP://studio.test http://STUDIO.test https://studio.test http://studio.tes`),
  ...words(`http://xstudio.test ${ORIGIN}@evil.test ${ORIGIN},${ORIGIN} "${ORIGIN}" ${ORIGIN}\x0b`),
  ...[`${ORIGIN}, http://evil.test`, `http://evil.test, ${ORIGIN}`, `${ORIGIN} http://evil.test`, ''],
  ...[`\xa0${ORIGIN}`, `${ORIGIN}\x00`, `${ORIGIN}\xa0`, `\x0c${ORIGIN}`, `${ORIGIN}\\`, '\xff'],
  ...words(
    `${ORIGIN}? ${ORIGIN}# http://studio%2etest http://evil.test http://127.0.0.1 http://gateway.test`,
  ),
  ...words('chrome-extension://x http://[::1]'),
];

export const ODD_ORIGIN_LINES = [
  ...items(`Origin : ${ORIGIN} | Origin\t: ${ORIGIN} | X-Origin: ${ORIGIN} | Origin\x00: ${ORIGIN}
  Referer: ${ORIGIN}/ | Origin: http://evil.test\r\nOrigin: ${ORIGIN}
  Origin: ${ORIGIN}\r\nOrigin: http://evil.test | Origin: ${ORIGIN}\r\norigin: ${ORIGIN}
  Origin:\r\n ${ORIGIN} | Origin: ${ORIGIN}\r\n x | Origin ${ORIGIN} | :Origin: ${ORIGIN}
  Origin;: ${ORIGIN} | Sec-Fetch-Site: same-origin | X: a\rOrigin: ${ORIGIN}
  X: a\x00Origin: ${ORIGIN} | X-Forwarded-Origin: ${ORIGIN} | Access-Control-Allow-Origin: ${ORIGIN}`),
  ` Origin: ${ORIGIN}`,
];

export const HOSTS = [
  ...words('a gateway.test:4175 127.0.0.1 [::1]:80 evil.test x/api/health? x/api/health# x/api/health'),
  ...words('/api/health a@b a\\b x:99999 x:-1 [::1 %00 \xff a,b http://x .. ? # x/../ x?/api/health'),
  ...['', ' ', 'a b', `${'h'.repeat(300)}.test`],
];

export const ODD_LINES = [
  ...items(`Idempotency-Key: a, b | Idempotency-Key: \xff\xfe | Idempotency-Key: a\tb | If-Match: a\x7fb
  Range: bytes=0-1 | Range: bytes=- | Range: x | Accept-Language: sw | Accept-Language: sw;q=0.5, en;q=0.4
  Accept-Language: ;q= | Accept-Language: sw;q=1e999,* | Accept-Language: ,,,;;; | Accept: */*
  Accept: \x01 | If-None-Match: "a" | If-Match: * | If-Range: x | traceparent: 00-x
  traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 | tracestate: a=b
  X-Request-Id: a b | X-Request-Id: ${'i'.repeat(65)} | X-Request-Id: {"level":"error"}
  Accept-Encoding: gzip, br | Authorization: Bearer mine | Authorization: Basic eDp5
  Proxy-Authorization: x | X-Forwarded-Host: evil.test | X-Forwarded-For: 127.0.0.1
  X-Original-URL: /api/health | X-Rewrite-URL: /v1/admin | X-HTTP-Method-Override: DELETE
  Forwarded: host=evil.test | Via: 1.1 x | Connection: close | Connection: keep-alive, Origin
  Connection: cookie | Connection: upgrade\r\nUpgrade: websocket | Keep-Alive: x | TE: trailers
  Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk | Expect: 100-continue | Expect: x | Trailer: Origin
  Max-Forwards: 0 | Content-Encoding: gzip | Access-Control-Request-Method: POST
  Access-Control-Request-Headers: x\xff | Host: second.test | : empty | no colon | X: \x00
  __proto__: x | constructor: x | Content-Disposition: x | Set-Cookie: a=b
  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13`),
  'Idempotency-Key: ',
];
