/** Request bodies: JSON near the schemas and far from them, forms, and bytes that are neither. */

import fc, { type Arbitrary } from 'fast-check';
import { maybe, pick, rarely, words } from './choices.ts';
import { PLACEHOLDER } from './marker.ts';

export interface Body {
  /** One character per byte. */
  readonly bytes: string;
  readonly contentType: string | undefined;
}

/** The names and JSON values that the route at the target expects. */
type Fields = readonly (readonly [name: string, json: string])[];
type FieldsOf = (target: string) => Fields;

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

export function body(oddity: number): Arbitrary<(target: string) => Body> {
  const odd = fc.oneof(
    typed(changed().map(objectOf), oddType()),
    typed(changed().map(objectOf), fc.constant(JSON_TYPE)),
    typed(fixed(pick(ODD_TEXTS)), fc.constant(JSON_TYPE)),
    typed(fixed(pick(ODD_TEXTS)), rarely(0.7, oddType(), fc.constant(undefined))),
    typed(form(), fc.constant(FORM_TYPE)),
    typed(
      fixed(
        fc.array(fc.nat(255), { maxLength: 300, size: 'max' }).map((codes) => String.fromCharCode(...codes)),
      ),
      oddType(),
    ),
    typed(rarely(0.03, nearLimit(), deep()), fc.constant(JSON_TYPE)),
    typed(fixed(fc.constant(MULTIPART)), fc.constant('multipart/form-data; boundary=b')),
  );
  return rarely(oddity, odd, typed(fields().map(objectOf), pick(JSON_TYPES)));
}

type Text = Arbitrary<(target: string) => string>;

function typed(text: Text, contentType: Arbitrary<string | undefined>): Arbitrary<(target: string) => Body> {
  return fc.tuple(text, contentType).map(([text, contentType]) => (target) => ({
    bytes: text(target),
    contentType,
  }));
}

function oddType(): Arbitrary<string> {
  return fc.oneof(pick(JSON_TYPES), pick(ODD_TYPES));
}

function fixed(text: Arbitrary<string>): Text {
  return text.map((each) => () => each);
}

function fields(): Arbitrary<FieldsOf> {
  const isPublic = maybe(0.3, pick(words('true "true" 1 false')));
  return fc
    .tuple(pick(CODE_FLAVOURS), rarely(0.2, pick(LENGTHS), fc.constant('30000')), isPublic)
    .map(([flavour, length, [isPublic]]) => (target) => {
      if (target.includes('/auth/')) {
        return [
          ['code', `"code.${PLACEHOLDER}.${flavour}"`],
          ['code_verifier', `"${'v'.repeat(43)}"`],
        ];
      }
      const generation: Fields = [
        ['model', '"sandbox-music-1"'],
        ['prompt', `"Rain ${PLACEHOLDER}"`],
        ['music_length_ms', length],
      ];
      return isPublic === undefined ? generation : [...generation, ['is_public', isPublic]];
    });
}

/** Up to three fields are removed, replaced, repeated, added, or given a length at a limit. */
function changed(): Arbitrary<FieldsOf> {
  type Change = (name: string) => Fields;
  const value = pick(ODD_VALUES);
  const change = fc.oneof(
    fc.constant<Change>(() => []),
    value.map(
      (json): Change =>
        (name) => [[name, json]],
    ),
    fc.tuple(value, value).map(
      ([first, second]): Change =>
        (name) => [
          [name, first],
          [name, second],
        ],
    ),
    fc.tuple(pick(ODD_NAMES), value).map(
      (field): Change =>
        () => [field],
    ),
    pick([42, 43, 119, 120, 121, 4100, 4101]).map(
      (length): Change =>
        (name) => [[name, `"${'y'.repeat(length)}"`]],
    ),
  );
  const changes = fc.array(fc.tuple(fc.nat(3), change), { minLength: 1, maxLength: 3 });
  return fc.tuple(fields(), changes).map(([fieldsOf, changes]) => (target) => {
    const result = [...fieldsOf(target)];
    for (const [at, change] of changes) {
      const index = at % (result.length || 1);
      result.splice(index, 1, ...change(result[index]?.[0] ?? 'code'));
    }
    return result;
  });
}

function objectOf(fieldsOf: FieldsOf): (target: string) => string {
  return (target) => objectText(fieldsOf(target));
}

function objectText(fields: Fields): string {
  return `{${fields.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
}

function form(): Text {
  const many = pick([999, 1001, 5000]).map((count) => '&f=1'.repeat(count));
  return fc
    .tuple(fields(), maybe(0.5, pick(FORMS)), maybe(0.05, many))
    .map(([fieldsOf, others, [many = '']]) => (target) => {
      const pairs = fieldsOf(target).map(([name, json]) => `${name}=${json.replaceAll('"', '')}`);
      return [...pairs, ...others].join('&') + many;
    });
}

function nearLimit(): Text {
  return fc.tuple(fields(), fc.integer({ min: -40, max: 20 })).map(([fieldsOf, beyond]) => (target) => {
    const fields = fieldsOf(target);
    const padding = LIMIT_BYTES - objectText(fields).length + beyond;
    return objectText([...fields, ['pad', `"${'p'.repeat(padding)}"`]]);
  });
}

/** Nested, wide, or with a long number. */
function deep(): Text {
  const shapes: readonly ((depth: number, fields: Fields) => string)[] = [
    (depth) => '['.repeat(depth) + ']'.repeat(depth),
    (depth) => '{"a":'.repeat(depth) + '}'.repeat(depth),
    (depth, fields) => objectText([...fields, ['deep', '['.repeat(depth) + ']'.repeat(depth)]]),
    (depth, fields) => objectText([...fields, ['digits', '9'.repeat(depth)]]),
    (depth) => `[${'0,'.repeat(depth)}0]`,
  ];
  return fc.tuple(pick(shapes), pick([50, 500, 5000, 20_000]), fields()).map(
    ([shape, depth, fieldsOf]) =>
      (target) =>
        shape(depth, fieldsOf(target)),
  );
}
