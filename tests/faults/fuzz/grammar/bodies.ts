/** Request bodies: JSON near the schemas and far from them, forms, and bytes that are neither. */

import fc, { type Arbitrary } from 'fast-check';
import { maybe, pick, rarely, words } from './choices.ts';
import { PLACEHOLDER } from './marker.ts';

export interface Body {
  /** One character per byte. */
  readonly bytes: string;
  readonly contentType: string | undefined;
}

/** Names and JSON values. */
type Fields = readonly (readonly [name: string, json: string])[];
/** Which route the body is for. */
export type Purpose = 'sign-in' | 'generation';

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
/** How the recording identity provider and upstream respond to a code that ends so. */
const CODE_FLAVOURS = words('ok ok ok no bad list crlf semi big data reset refused 503');
const LENGTHS = words(
  '3000 600000 30000 2999 600001 30000.0 3e4 3e400 -0 1e999 "30000" 30000.5 9007199254740993',
);
const JSON_TYPES = [JSON_TYPE, JSON_TYPE, JSON_TYPE, 'application/json; charset=utf-8', 'APPLICATION/JSON'];
const ODD_TYPES = [
  ...words(`text/plain ${FORM_TYPE} application/json/ application/jsonx ; json text/html \xff __proto__ */*`),
  ...words('application/json;charset=utf-16 application/octet-stream'),
  ...['', 'multipart/form-data; boundary=b', 'application/json, text/plain'],
];
const ODD_VALUES = [
  ...words(
    'null true false 0 -1 1e999 -1e999 1e-999 "" "x" [] {} [[]] {"a":{}} "\\u0000" "\\ud800" "\\u2028"',
  ),
  ...words('{"__proto__":{"is_public":true}} {"toString":1} {"length":43} ["a"] 99999999999999999999 " "'),
  '"\xf0\x9f\x8e\xb5"',
];
const ODD_NAMES = [...words('__proto__ constructor prototype a\\u0000 data'), ''];
const ODD_TEXTS = [
  ...words(`null [] [1] "x" 0 true { } {} [ {"a" {"a":} {"a":1,} {'a':1} NaN undefined {}{} [null] \x00`),
  ...words('\xef\xbb\xbf{} \xff\xfe{\x00}\x00 \xc0\xaf "\xed\xa0\x80" {"__proto__":[]}'),
  ...['', ' ', '{"constructor":{"prototype":{}}}', '{} x', '/* */{}'],
];
const FORMS = words('a=b & = &&&= % %zz=%zz __proto__=x __proto__[is_public]=true a[]=1 \xff=\xff code +=+');
const MULTIPART = '--b\r\nContent-Disposition: form-data; name="code"\r\n\r\nx\r\n--b--';
const LIMIT_BYTES = 2 * 1024 * 1024;

export function body(oddity: number, purpose: Purpose): Arbitrary<Body> {
  const usual = fields(purpose);
  const bytes = fc.array(fc.nat(255), { maxLength: 300, size: 'max' });
  const odd = fc.oneof(
    typed(changed(usual).map(objectText), fc.oneof(pick(JSON_TYPES), pick(ODD_TYPES))),
    typed(changed(usual).map(objectText), fc.constant(JSON_TYPE)),
    typed(pick(ODD_TEXTS), fc.constant(JSON_TYPE)),
    typed(pick(ODD_TEXTS), fc.oneof(pick(ODD_TYPES), fc.constant(undefined))),
    typed(form(usual), fc.constant(FORM_TYPE)),
    typed(
      bytes.map((codes) => String.fromCharCode(...codes)),
      fc.oneof(pick(JSON_TYPES), pick(ODD_TYPES)),
    ),
    typed(rarely(0.03, nearLimit(usual), deep(usual)), fc.constant(JSON_TYPE)),
    typed(fc.constant(MULTIPART), fc.constant('multipart/form-data; boundary=b')),
  );
  return rarely(oddity, odd, typed(usual.map(objectText), pick(JSON_TYPES)));
}

function typed(bytes: Arbitrary<string>, contentType: Arbitrary<string | undefined>): Arbitrary<Body> {
  return fc.record({ bytes, contentType });
}

function fields(purpose: Purpose): Arbitrary<Fields> {
  if (purpose === 'sign-in') {
    return pick(CODE_FLAVOURS).map((flavour) => [
      ['code', `"code.${PLACEHOLDER}.${flavour}"`],
      ['code_verifier', `"${'v'.repeat(43)}"`],
    ]);
  }
  return fc
    .tuple(rarely(0.2, pick(LENGTHS), fc.constant('30000')), maybe(0.3, pick(words('true "true" 1 false'))))
    .map(([length, isPublic]) => [
      ['model', '"sandbox-music-1"'],
      ['prompt', `"Rain ${PLACEHOLDER}"`],
      ['music_length_ms', length],
      ...isPublic.map((each) => ['is_public', each] as const),
    ]);
}

/** Up to three fields are removed, replaced, repeated, added, or given a length at a limit. */
function changed(usual: Arbitrary<Fields>): Arbitrary<Fields> {
  const limits = pick([42, 43, 119, 120, 121, 4100, 4101]).map((length) => `"${'y'.repeat(length)}"`);
  const values = fc.array(fc.oneof({ weight: 3, arbitrary: pick(ODD_VALUES) }, limits), { maxLength: 2 });
  const change = fc.tuple(fc.nat(3), values, maybe(0.2, pick(ODD_NAMES)));
  return fc.tuple(usual, fc.array(change, { minLength: 1, maxLength: 3 })).map(([fields, changes]) => {
    const result = [...fields];
    for (const [at, values, [otherName]] of changes) {
      const index = at % (result.length || 1);
      const name = otherName ?? result[index]?.[0] ?? 'code';
      result.splice(index, 1, ...values.map((json) => [name, json] as const));
    }
    return result;
  });
}

function objectText(fields: Fields): string {
  return `{${fields.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
}

function form(usual: Arbitrary<Fields>): Arbitrary<string> {
  const many = pick([999, 1001, 5000]).map((count) => '&f=1'.repeat(count));
  return fc.tuple(usual, maybe(0.5, pick(FORMS)), maybe(0.05, many)).map(([fields, others, [many = '']]) => {
    const pairs = fields.map(([name, json]) => `${name}=${json.replaceAll('"', '')}`);
    return [...pairs, ...others].join('&') + many;
  });
}

function nearLimit(usual: Arbitrary<Fields>): Arbitrary<string> {
  return fc.tuple(usual, fc.integer({ min: -40, max: 20 })).map(([fields, beyond]) => {
    const padding = LIMIT_BYTES - objectText(fields).length + beyond;
    return objectText([...fields, ['pad', `"${'p'.repeat(padding)}"`]]);
  });
}

/** Nested, wide, or with a long number. */
function deep(usual: Arbitrary<Fields>): Arbitrary<string> {
  const shapes: readonly ((depth: number, fields: Fields) => string)[] = [
    (depth) => '['.repeat(depth) + ']'.repeat(depth),
    (depth) => '{"a":'.repeat(depth) + '}'.repeat(depth),
    (depth, fields) => objectText([...fields, ['deep', '['.repeat(depth) + ']'.repeat(depth)]]),
    (depth, fields) => objectText([...fields, ['digits', '9'.repeat(depth)]]),
    (depth) => `[${'0,'.repeat(depth)}0]`,
  ];
  return fc
    .tuple(pick(shapes), pick([50, 500, 5000, 20_000]), usual)
    .map(([shape, depth, fields]) => shape(depth, fields));
}
