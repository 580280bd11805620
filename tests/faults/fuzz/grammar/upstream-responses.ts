/** Responses of the upstream: links, addresses, Vary, limits, and headers that end at the gateway. */

import { Random } from '../random.ts';
import { linkLines } from './link-lines.ts';
import { address } from './upstream-addresses.ts';

export interface RichResponse {
  readonly status: number;
  /** Without the one that says how long the body is. */
  readonly lines: readonly string[];
  readonly hasBody: boolean;
}

const STATUSES = [
  ...[200, 200, 200, 200, 200, 200, 201, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308],
  ...[400, 402, 403, 404, 409, 410, 412, 416, 422, 429, 429, 503, 503, 507],
];
const BODILESS = [204, 205, 304];
const VARIES = [
  ...['Accept', 'accept-encoding', 'Origin', 'origin, Cookie', 'Cookie', 'Accept, Accept-Language', '*'],
  ...['Accept, *', 'a b', '', ',', ',Accept,,', 'X-Plan;q=1', '"Accept"', 'Accept-Encoding,ACCEPT-ENCODING'],
  ...['**', 'Accept\t,\tX-Plan', 'X-\xe9, Accept', 'Access-Control-Request-Headers'],
];
const PASSING = [
  ...['Content-Type: audio/mpeg', 'Content-Type: application/json', 'Content-Type: text/html'],
  ...['Content-Language: sw', 'Content-Disposition: attachment; filename="a.mp3"', 'Accept-Ranges: bytes'],
  ...[
    'ETag: W/"a"',
    'Last-Modified: Tue, 01 Sep 2026 10:00:00 GMT',
    'Expires: 0',
    'Age: 7',
    'Allow: GET, PUT',
  ],
  ...['Cache-Control: public, max-age=60', 'X-Generation-Id: gen-7', 'X-Music-Creation-Id: creation-7'],
];
const LIMITS = [
  ...['Retry-After: 120', 'Retry-After: Tue, 01 Sep 2026 10:00:00 GMT', 'RateLimit: "day";r=0;t=3600'],
  ...['RateLimit-Policy: "day";q=10;w=86400', 'RateLimit-Remaining: 3', 'X-RateLimit-Remaining: 4'],
];
const ENDING = [
  ...[
    'Keep-Alive: timeout=77',
    'Proxy-Authenticate: Basic realm="up"',
    'Proxy-Connection: keep-alive',
    'TE: gzip',
  ],
  ...[
    'Trailer: X-Sum',
    'Upgrade: h2c',
    'Proxy-Authentication-Info: nextnonce="n"',
    'Set-Cookie: up=1; Path=/',
  ],
  ...['Server: up/1', 'Via: 1.1 up', 'Refresh: 5; url=http://evil.test/', 'Alt-Svc: h3=":443"'],
  ...['Clear-Site-Data: "cookies"', 'X-Internal: node-7', 'Access-Control-Allow-Origin: http://evil.test'],
  ...['Content-Security-Policy: default-src http:', 'X-Content-Type-Options: other'],
];

/** The same one for the same marker. `host` is the upstream's. */
export function richResponse(marker: string, host: string): RichResponse {
  const random = new Random(Number.parseInt(marker.slice(-8), 16) || 0, 1);
  const status = random.pick(STATUSES);
  const lines: string[] = [];
  if (status === 206) lines.push('Content-Range: bytes 0-9/100');
  for (let left = random.below(4); left > 0; left--) addOnce(lines, random.pick(PASSING));
  while (random.chance(status >= 400 ? 0.6 : 0.2)) addOnce(lines, random.pick(LIMITS));
  if (random.chance(0.6)) lines.push(`Vary: ${random.pick(VARIES)}`);
  if (random.chance(0.1)) lines.push(`vary: ${random.pick(VARIES)}`);
  if (random.chance(0.4)) lines.push(`Location: ${address(random, host)}`);
  if (random.chance(0.3)) lines.push(`Content-Location: ${address(random, host)}`);
  lines.push(...linkLines(random, host));
  while (random.chance(0.4)) addOnce(lines, random.pick(ENDING));
  if (random.chance(0.4)) lines.push(...connectionLines(random, lines));
  if (status === 205) lines.push('Content-Length: 0');
  return { status, lines, hasBody: !BODILESS.includes(status) };
}

/** Names some of what is there, and what is not. */
function connectionLines(random: Random, lines: readonly string[]): string[] {
  const names = [...lines.map((line) => line.split(':', 1)[0] ?? ''), 'keep-alive', 'X-Absent', ''];
  const spelling = (name: string) =>
    random.pick([name, name.toLowerCase(), name.toUpperCase(), ` ${name}\t`]);
  return Array.from({ length: random.pick([1, 1, 1, 2]) }, () => {
    const named = Array.from({ length: random.between(1, 3) }, () => spelling(random.pick(names)));
    return `${random.pick(['Connection', 'connection'])}: ${named.join(',')}`;
  });
}

function addOnce(lines: string[], line: string): void {
  const start = line.slice(0, line.indexOf(':') + 1);
  if (!lines.some((each) => each.startsWith(start))) lines.push(line);
}
