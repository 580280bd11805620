/** Cookie headers: sessions that the recording upstream understands, and hostile values. */

import type { Random } from '../random.ts';

/** What the recording upstream does with a token that ends so. */
export const ACCESS_FLAVOURS = [
  'ok',
  '401',
  '404',
  '409',
  '503',
  '302',
  '204',
  '304',
  'long',
  'gzip',
  'odd',
  'reset',
  'dies',
];
export const REFRESH_FLAVOURS = [
  'ok',
  'data',
  'no',
  'bad',
  'list',
  'crlf',
  'semi',
  'big',
  'late',
  'reset',
  'again',
];

const HOSTILE_VALUES = [
  ...[
    '',
    '"',
    '"a b"',
    '=',
    '==',
    'a=b',
    '%',
    '%zz',
    '%00',
    '%0d%0aSet-Cookie:%20x=y',
    'a%20b',
    'a\tb',
    '\x7f',
    '\xff\xfe',
    '\xc3\xa9',
  ],
  ...[
    '{"a":1}',
    '[1]',
    'null',
    'undefined',
    'true',
    '12345',
    '1e999',
    '__proto__',
    'constructor',
    '%F0%9F%8E%B5',
    '%c0%af',
    'j:{"a":1}',
  ],
  ...[
    's:x.y',
    'eyJhbGciOiJkaXIifQ..a.b.c',
    'eyJhbGciOiJub25lIn0.e30.',
    '$Version',
    'a\x00b',
    'a\x01b',
    '..',
    '<script>',
    "' or 1=1",
  ],
];
const OTHER_COOKIES = [
  'a=b',
  '__proto__=x',
  'constructor=y',
  'x',
  '=',
  '=;=',
  ';;',
  '$Path=/',
  '\xff=\xff',
  'svc_music=1',
  'SVC_MUSIC_ACCESS=x',
];

/** The lines of the request's Cookie header; none for a request without. */
export function cookieLines(random: Random, marker: string, oddity: number): string[] {
  if (random.chance(0.12)) return [];
  const parts = sessionParts(random, marker, oddity);
  if (random.chance(oddity)) parts.splice(random.below(parts.length + 1), 0, random.pick(OTHER_COOKIES));
  if (random.chance(oddity / 3)) parts.push(...sessionParts(random, marker, oddity));
  if (random.chance(oddity / 30))
    parts.unshift(`pad=${'p'.repeat(random.pick([4096, 15_500, 16_500, 40_000]))}`);
  if (random.chance(oddity / 30)) parts.unshift('o=x; '.repeat(random.pick([100, 3000])));
  if (random.chance(oddity / 5)) return parts.map((part) => `Cookie: ${part}`);
  return [
    `${random.chance(oddity / 5) ? 'cOOkie' : 'Cookie'}: ${parts.join(random.chance(oddity / 5) ? ';' : '; ')}`,
  ];
}

function sessionParts(random: Random, marker: string, oddity: number): string[] {
  const parts: string[] = [];
  const value = (kind: string, flavours: readonly string[]) =>
    random.chance(oddity / 2) ? random.pick(HOSTILE_VALUES) : `${kind}.${marker}.${random.pick(flavours)}`;
  const has = random.pick(['both', 'both', 'both', 'access', 'refresh']);
  // Most of the access tokens are simply good, so that much of the rest is reached.
  const accessFlavours = random.chance(0.7)
    ? ['ok', 'rich', 'rich']
    : [...ACCESS_FLAVOURS, '401', '401', '401', '401'];
  if (has !== 'refresh') parts.push(`svc_music_access=${value('acc', accessFlavours)}`);
  if (has !== 'access') parts.push(`svc_music_refresh=${value('ref', REFRESH_FLAVOURS)}`);
  return parts;
}
