/** Header lines: host, origin, and everything that a client may or should not send. */

import fc, { type Arbitrary } from 'fast-check';
import { ORIGIN } from '../../../support/world.ts';
import { few, items, maybe, pick, rarely, words } from './choices.ts';
import { connection } from './connection.ts';
import { cookieLines } from './cookies.ts';
import { PLACEHOLDER } from './marker.ts';
import { HOSTS, ODD_LINES, ODD_ORIGIN_LINES, ODD_ORIGINS } from './odd-lines.ts';

/** What a browser or a player may well send. */
const RELAYED_LINES =
  items(`Accept: application/json | Accept: audio/*;q=0.9, */* | Accept-Language: sw, en;q=0.5
  Accept-Encoding: br | Accept-Encoding: gzip, deflate | Cache-Control: no-cache | Pragma: no-cache
  Content-Encoding: identity | Range: bytes=0-99 | Range: bytes=100- | If-Range: "a"
  If-None-Match: W/"a", "b" | If-Match: "a" | If-Modified-Since: Tue, 01 Sep 2026 10:00:00 GMT
  If-Unmodified-Since: Tue, 01 Sep 2026 10:00:00 GMT
  traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 | tracestate: a=b`);
const CONNECTION_OPTIONS = [
  ...words(
    'keep-alive close X-Absent "range" range;x host content-length transfer-encoding authorization via',
  ),
  ...words('x-request-id traceparent accept accept-encoding user-agent *'),
  '',
];
/** More than any request without an excess of headers has. */
const MOST_LINES = 30;

/**
 * Every line but the ones that say where the body ends.
 *
 * @param isForbidden the allowed origin is never sent
 * @param host how likely the host is odd
 */
export function headerLines(
  oddity: number,
  isForbidden: boolean,
  host: number,
): Arbitrary<readonly string[]> {
  const key = fc.constant(`Idempotency-Key: ${PLACEHOLDER}`);
  const many = pick([60, 150, 300, 2000]).map((count) =>
    Array.from({ length: count }, (_, index) => `X-${index}: y`),
  );
  const long = pick([8000, 17_000, 70_000]).map((length) => `X-Long: ${'x'.repeat(length)}`);
  const parts = fc.tuple(
    rarely(oddity / 20, fc.constant([]), hostLine(host)),
    rarely(isForbidden ? 1 : oddity / 2, oddOrigin(), usualOrigin()),
    cookieLines(oddity),
    maybe(0.3, key),
    few(0.3, pick(RELAYED_LINES)),
    few(oddity, pick(ODD_LINES)),
    maybe(oddity / 50, many).map((each) => each.flat()),
    maybe(oddity / 50, long),
  );
  return fc
    .tuple(parts, maybe(oddity, connection(CONNECTION_OPTIONS)), maybe(oddity, ranks()))
    .map(([parts, [nameConnection], [ranks]]) => {
      const all = parts.flat();
      const named = nameConnection ? [...all, nameConnection(all)] : all;
      return ranks ? shuffled(named, ranks) : named;
    });
}

function hostLine(odd: number): Arbitrary<readonly string[]> {
  // Of the first ones no address can be made, so that the gateway does not see an absolute URL.
  const hosts = rarely(0.6, pick(HOSTS), pick(['', 'a b', '/']));
  return rarely(odd, hosts, fc.constant('gateway.test')).map((host) => [`Host: ${host}`]);
}

function usualOrigin(): Arbitrary<readonly string[]> {
  const names = pick(words('Origin Origin origin ORIGIN'));
  return fc.tuple(names, pick([' ', ' ', '', '\t '])).map(([name, space]) => [`${name}:${space}${ORIGIN}`]);
}

function oddOrigin(): Arbitrary<readonly string[]> {
  return fc.oneof(
    fc.constant([]),
    pick(ODD_ORIGINS).map((origin) => [`Origin: ${origin}`]),
    pick(ODD_ORIGINS).map((origin) => [`Origin: ${origin}`]),
    pick(ODD_ORIGIN_LINES).map((line) => [line]),
  );
}

function ranks(): Arbitrary<readonly number[]> {
  return fc.array(fc.nat(MOST_LINES), { minLength: MOST_LINES, maxLength: MOST_LINES });
}

function shuffled(lines: readonly string[], ranks: readonly number[]): string[] {
  return lines
    .map((line, index) => ({ line, rank: ranks[index % ranks.length] ?? 0 }))
    .toSorted((first, second) => first.rank - second.rank)
    .map(({ line }) => line);
}
