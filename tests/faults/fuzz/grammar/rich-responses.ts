/** Responses of the upstream: links, addresses, Vary, limits, and headers that must not pass. */

import fc, { type Arbitrary } from 'fast-check';
import { few, items, maybe, pick, rarely, words } from './choices.ts';
import { connection } from './connection.ts';

/** `{host}` and `{port}` in its lines stand for the upstream's. */
export interface RichResponse {
  readonly status: number;
  /** Without the one that says how long the body is. */
  readonly lines: readonly string[];
}

const STATUSES = [
  ...[200, 201, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308, 200, 200, 200, 200, 200],
  ...[400, 402, 403, 404, 409, 410, 412, 416, 422, 429, 429, 503, 503, 507],
];
const VARIES = [
  ...words(
    'Accept accept-encoding Origin Cookie * , ,Accept,, X-Plan;q=1 "Accept" Accept-Encoding,ACCEPT-ENCODING **',
  ),
  ...[
    'origin, Cookie',
    'Accept, Accept-Language',
    'Accept, *',
    'a b',
    '',
    'Accept\t,\tX-Plan',
    'X-\xe9, Accept',
  ],
  'Access-Control-Request-Headers',
];
const PASSING = items(`Content-Type: audio/mpeg | Content-Type: application/json | Content-Type: text/html
  Content-Language: sw | Content-Disposition: attachment; filename="a.mp3" | Accept-Ranges: bytes
  ETag: W/"a" | Last-Modified: Tue, 01 Sep 2026 10:00:00 GMT | Expires: 0 | Age: 7 | Allow: GET, PUT
  Cache-Control: public, max-age=60 | X-Generation-Id: gen-7 | X-Music-Creation-Id: creation-7`);
const LIMITS =
  items(`Retry-After: 120 | Retry-After: Tue, 01 Sep 2026 10:00:00 GMT | RateLimit: "day";r=0;t=3600
  RateLimit-Policy: "day";q=10;w=86400 | RateLimit-Remaining: 3 | X-RateLimit-Remaining: 4`);
const ENDING =
  items(`Keep-Alive: timeout=77 | Proxy-Authenticate: Basic realm="up" | Proxy-Connection: keep-alive
  TE: gzip | Trailer: X-Sum | Upgrade: h2c | Proxy-Authentication-Info: nextnonce="n"
  Set-Cookie: up=1; Path=/ | Server: up/1 | Via: 1.1 up | Refresh: 5; url=http://evil.test/
  Alt-Svc: h3=":443" | Clear-Site-Data: "cookies" | X-Internal: node-7
  Access-Control-Allow-Origin: http://evil.test | Content-Security-Policy: default-src http:
  X-Content-Type-Options: other`);
const OTHER_ADDRESSES = [
  ...words('https://cdn.test/a http://evil.test/base/v1/x https://cdn.test/?u=/base/v1/ //cdn.test/a'),
  ...words('https://cdn.test/a,b;c HTTPS://CDN.test/A https://cdn.test http://127.0.0.1/base/v1/x'),
];
const RELATIVE_ADDRESSES = [
  ...words(
    'next ./next ../next ../../v1/x?a=b ?page=2 #part /base/v1/x?a=b#c /base/v1/ /v1/x /base / /base/v10/x',
  ),
  ...words('/base/v1/../../x /base/v1/%2e%2e/%2e%2e/x /base/v1/a%20b ./../v1/x /base/v1/auth/refresh'),
  ...words('/base/v1/x;a=b /base/v1/;x/y /base/v1/a,b /BASE/v1/x /base/v1 /base/v1//x /base/v1/a%2fb x;y=1'),
  '../../../../base/v1/z',
];
const OWN_PATHS = [...words('/base/v1/x /base/v1/x?a=b#c /base/v1/ /base/v1 /base/v2/x /v1/x /'), ''];
const OWN_HOSTS =
  words(`//{host} HTTP://{host} https://{host} http:\\\\{host} http://u:p@{host} http://127.1:{port}
  http://2130706433:{port} http: http:///{host} /\\{host} http://0x7f.1:{port}`);
const BROKEN_ADDRESSES = words('http://{host}:80 http://[ http://{host}.evil.test/');
const LINK_PARAMETERS = [
  ...items(`; rel=next | ; rel="next" | ;rel="next prev" | ; rel = "next" | ; rel="next"; title="a, b; c" | ;
  ; title="say \\"<x>, y\\""; rel=up | ; rel=up; title*=UTF-8''a%2Cb | ; ;rel=up | ; crossorigin
  ; rel="https://rels.test/a,b" | ; media="(min-width: 1px), print"`),
  ...['', ' ; rel=preload ; as=audio'],
];
/** No lists of links, with the upstream's address in them. */
const ODD_LINKS = [
  ...['{own}', '<{own}', '<{own}>; title="open', '<next>; anchor="{own}"', '"<{own}>"', '{own}>; rel=next'],
  ...['<next> <{own}>', '<<{own}>>', '<next>; rel={own}', '<next>; title="\\", <{own}>', ';<{own}>'],
  ...['<https://cdn.test/>; title="x", <{own}', `<{own}>${';'.repeat(2000)}`, '<next>,'.repeat(300)],
].map((link) => link.replaceAll('{own}', 'http://{host}/base/v1/x'));

export function richResponse(): Arbitrary<RichResponse> {
  const vary = pick(VARIES);
  const named = (name: string, value: Arbitrary<string>) => value.map((each) => `${name}: ${each}`);
  const others = fc.tuple(
    few(0.6, pick(PASSING)),
    maybe(0.6, named('Vary', vary)),
    maybe(0.1, named('vary', vary)),
    maybe(0.4, named('Location', address())),
    maybe(0.3, named('Content-Location', address())),
    few(0.5, named('Link', links())),
    few(0.4, pick(ENDING)),
  );
  return fc
    .tuple(
      pick(STATUSES),
      others,
      few(0.6, pick(LIMITS)),
      maybe(0.2, pick(LIMITS)),
      maybe(0.4, connection(['keep-alive', 'X-Absent', ''])),
    )
    .map(([status, others, limits, rareLimit, [connectionOf]]) => {
      const range = status === 206 ? ['Content-Range: bytes 0-9/100'] : [];
      const all = onceEach([...range, ...others.flat(), ...(status >= 400 ? limits : rareLimit)]);
      const length = status === 205 ? ['Content-Length: 0'] : [];
      return { status, lines: [...all, ...(connectionOf ? [connectionOf(all)] : []), ...length] };
    });
}

/** Only these are sent several times. */
const REPEATED = /^(?:vary|link):/i;

function onceEach(lines: readonly string[]): string[] {
  const nameOf = (line: string) => line.slice(0, line.indexOf(':') + 1);
  return lines.filter(
    (line, index) =>
      REPEATED.test(line) || lines.findIndex((each) => nameOf(each) === nameOf(line)) === index,
  );
}

function address(): Arbitrary<string> {
  const path = pick(OWN_PATHS);
  const own = path.map((each) => `http://{host}${each}`);
  const odd = fc.tuple(pick(OWN_HOSTS), path).map((each) => each.join(''));
  const usual = [own, pick(RELATIVE_ADDRESSES)];
  return fc.oneof(...usual, ...usual, pick(OTHER_ADDRESSES), rarely(0.2, pick(BROKEN_ADDRESSES), odd));
}

function links(): Arbitrary<string> {
  const target = rarely(0.05, fc.constant(''), address());
  const link = fc
    .tuple(target, pick(LINK_PARAMETERS))
    .map(([target, parameters]) => `<${target}>${parameters}`);
  const list = fc
    .tuple(fc.array(link, { minLength: 1, maxLength: 4 }), pick([', ', ', ', ',', ' ,\t', ', , ']))
    .map(([links, separator]) => links.join(separator));
  return rarely(0.1, pick(ODD_LINKS), list);
}
