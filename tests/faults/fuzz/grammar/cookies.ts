/** Cookie headers: sessions that the recording upstream understands, and hostile values. */

import fc, { type Arbitrary } from 'fast-check';
import { maybe, pick, rarely, words } from './choices.ts';
import { PLACEHOLDER } from './marker.ts';

/** How the recording upstream responds to a token that ends so. Most are good, so that much of the rest is reached. */
const ACCESS_FLAVOURS = words('ok rich rich');
const BAD_ACCESS_FLAVOURS = words('401 401 401 401 401 ok 404 409 503 302 204 304 long gzip odd reset dies');
const REFRESH_FLAVOURS = words('ok data no bad list crlf semi big late reset again');

const HOSTILE_VALUES = [
  ...words('" = == a=b % %zz %00 %0d%0aSet-Cookie:%20x=y a%20b \x7f \xff\xfe \xc3\xa9 {"a":1} [1] null'),
  ...words('undefined true 12345 1e999 __proto__ constructor %F0%9F%8E%B5 %c0%af j:{"a":1} s:x.y'),
  ...words('eyJhbGciOiJkaXIifQ..a.b.c eyJhbGciOiJub25lIn0.e30. $Version a\x00b a\x01b .. <script>'),
  ...['', '"a b"', 'a\tb', "' or 1=1"],
];
const OTHER_COOKIES = words(
  'a=b __proto__=x constructor=y x = =;= ;; $Path=/ \xff=\xff svc_music=1 SVC_MUSIC_ACCESS=x',
);

export function cookieLines(oddity: number): Arbitrary<readonly string[]> {
  const long = pick([4096, 15_500, 16_500, 40_000]).map((length) => `pad=${'p'.repeat(length)}`);
  const parts = fc
    .tuple(
      maybe(
        oddity / 30,
        pick([100, 3000]).map((count) => 'o=x; '.repeat(count)),
      ),
      maybe(oddity / 30, long),
      maybe(oddity / 2, pick(OTHER_COOKIES)),
      session(oddity),
      maybe(oddity / 2, pick(OTHER_COOKIES)),
      maybe(oddity / 3, session(oddity)).map((each) => each.flat()),
    )
    .map((each) => each.flat());
  const name = rarely(oddity / 5, fc.constant('cOOkie'), fc.constant('Cookie'));
  const separator = rarely(oddity / 5, fc.constant(';'), fc.constant('; '));
  const oneLine = fc.tuple(name, parts, separator).map(([name, parts, by]) => [`${name}: ${parts.join(by)}`]);
  const severalLines = parts.map((each) => each.map((part) => `Cookie: ${part}`));
  return rarely(0.12, fc.constant([]), rarely<readonly string[]>(oddity / 5, severalLines, oneLine));
}

function session(oddity: number): Arbitrary<readonly string[]> {
  const value = (kind: string, flavour: Arbitrary<string>) =>
    rarely(
      oddity / 2,
      pick(HOSTILE_VALUES),
      flavour.map((each) => `${kind}.${PLACEHOLDER}.${each}`),
    );
  const access = value('acc', rarely(0.3, pick(BAD_ACCESS_FLAVOURS), pick(ACCESS_FLAVOURS)));
  const refresh = value('ref', pick(REFRESH_FLAVOURS));
  return fc
    .tuple(pick(words('access both both both refresh')), access, refresh)
    .map(([has, access, refresh]) => [
      ...(has === 'refresh' ? [] : [`svc_music_access=${access}`]),
      ...(has === 'access' ? [] : [`svc_music_refresh=${refresh}`]),
    ]);
}
