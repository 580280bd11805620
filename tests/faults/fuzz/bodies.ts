/** Request bodies near the schemas and far from them, and where they end: stated correctly, or as request smuggling does. */

import fc, { type Arbitrary } from 'fast-check';
import { PLACEHOLDER, pick, rarely, words } from './choices.ts';

export interface Body {
  /** One character per byte. */
  readonly bytes: string;
  readonly contentType: string;
}
interface Framed {
  readonly lines: readonly string[];
  readonly bytes: string;
  /** Whether length and bytes agree. */
  readonly isHonest: boolean;
}
type Framing = (body: string) => Framed;

const FORM_TYPE = 'application/x-www-form-urlencoded';
const ODD_TYPES = [
  ...words(`text/plain ${FORM_TYPE} ${FORM_TYPE} application/jsonx ; \xff __proto__ APPLICATION/JSON`),
  ...[
    '',
    'multipart/form-data; boundary=b',
    'application/json, text/plain',
    'application/json; charset=utf-16',
  ],
];
/** How the recording identity provider and upstream respond to a code that ends so. */
const CODE_FLAVOURS = words('ok ok ok no bad list crlf semi big data reset refused 503');
const LENGTHS = words('3000 600000 2999 600001 30000.0 3e400 -0 "30000" 30000.5 9007199254740993');
const ODD_VALUES = words(
  'null true -1 1e999 "" [] {"a":{}} "\\u0000" "\\ud800" " {"__proto__":{"is_public":true}} {"length":43} "y"',
);
/** JSON, forms, and what is neither: unit/request-fields has each of them with its status. */
const ODD_TEXTS = [
  ...words(`null [] "x" 0 true { {"a" {"a":1,} NaN {}{} \x00 \xef\xbb\xbf{} \xff\xfe{\x00}\x00 \xc0\xaf`),
  ...words('{"__proto__":[]} & %zz=%zz __proto__[is_public]=true code=a&code=b \xff=\xff'),
  ...['', '['.repeat(20_000), '{"a":'.repeat(500), `[${'0,'.repeat(20_000)}0]`, 'f=1&'.repeat(1001)],
  ...['--b\r\nContent-Disposition: form-data; name="code"\r\n\r\nx\r\n--b--', 'p'.repeat(2 * 1024 ** 2 + 1)],
];

const SIGN_IN = pick(CODE_FLAVOURS).map((flavour) => [
  ...[`"code":"code.${PLACEHOLDER}.${flavour}"`, `"code_verifier":"${'v'.repeat(43)}"`],
]);
const GENERATION = rarely(0.2, pick(LENGTHS), fc.constant('30000')).map((length) => [
  ...['"model":"sandbox-music-1"', `"prompt":"Rain ${PLACEHOLDER}"`, `"music_length_ms":${length}`],
]);

export function body(oddity: number, purpose: 'sign-in' | 'generation'): Arbitrary<Body> {
  const usual = purpose === 'sign-in' ? SIGN_IN : GENERATION;
  const change = fc.tuple(usual, fc.nat(2), fc.array(pick(ODD_VALUES), { maxLength: 2 }));
  const changed = change.map(([fields, at, values]) => {
    const [name = ''] = fields[at % fields.length]?.split(':') ?? [];
    return fields.toSpliced(at, 1, ...values.map((value) => `${name}:${value}`));
  });
  const objectText = (fields: readonly string[]) => `{${fields.join(',')}}`;
  const random = fc.array(fc.nat(255), { maxLength: 300, size: 'max' });
  const odd = fc.oneof(
    changed.map(objectText),
    pick(ODD_TEXTS),
    random.map((codes) => String.fromCharCode(...codes)),
  );
  return fc.record({
    bytes: rarely(oddity, odd, usual.map(objectText)),
    contentType: rarely(oddity / 3, pick(ODD_TYPES), fc.constant('application/json')),
  });
}

const CHUNKED = 'Transfer-Encoding: chunked';
const SMUGGLED = 'GET /api/upstream/v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
const ODD_LINES = [
  ...[...words('-1 +1 0x1 1e1 99999999999999999999 4294967296 007 2097153'), '', ' ', '1 1'].map(
    (length) => `Content-Length: ${length}`,
  ),
  ...['identity', 'xchunked', 'chunked, chunked', 'gzip, chunked', '\x0bchunked', 'chunked\x00'].map(
    (coding) => `Transfer-Encoding: ${coding}`,
  ),
  ...['Transfer-Encoding : chunked', 'Transfer-Encoding:\r\n chunked'],
];
/** What stands in the place of the last chunk. */
const CHUNK_ENDS = [
  '',
  '0\r\n',
  '0',
  'g\r\n',
  '-1\r\n',
  '\r\n',
  '0\n\n',
  '0\r\nOrigin: http://studio.test\r\n\r\n',
];
const exact = (length: number) => `Content-Length: ${length}`;
const LIES: readonly Framing[] = [
  (body) => lie(body),
  (body) => lie(body, exact(body.length), exact(body.length + 1)),
  (body) => lie(body, exact(body.length), exact(body.length)),
  (body) => lie(body, `Content-Length: ${body.length}, ${body.length}`),
  (body) => lie(body, exact(body.length), CHUNKED),
  (body) => lie(body, exact(Math.floor(body.length / 2))),
  (body) => lie(body, exact(body.length + 100)),
  (body) => lie(`${body.length.toString(16)}\n${body}\n0\n\n`, CHUNKED),
  (body) => lie(`ffffffffffffffff1\r\n${body}\r\n0\r\n\r\n`, CHUNKED),
  () => lie(SMUGGLED, 'Content-Length: 0'),
  () => lie(`0\r\n\r\n${SMUGGLED}`, 'Content-Length: 5', CHUNKED),
];

export function framing(oddity: number): Arbitrary<Framing> {
  const declared: Framing = (bytes) => ({ lines: [exact(bytes.length)], bytes, isHonest: true });
  const inChunks = fc.array(fc.nat(300), { maxLength: 3 }).map((sizes): Framing => {
    return (body) => ({ lines: [CHUNKED], bytes: `${chunks(body, sizes)}0\r\n\r\n`, isHonest: true });
  });
  const oddlyEnded = pick(CHUNK_ENDS).map(
    (end): Framing =>
      (body) =>
        lie(chunks(body, [2]) + end, CHUNKED),
  );
  const oddLine = pick(ODD_LINES).map(
    (line): Framing =>
      (body) =>
        lie(body, line),
  );
  const dishonest = fc.oneof(pick(LIES), pick(LIES), pick(LIES), oddLine, oddlyEnded);
  return rarely(oddity / 4, dishonest, rarely(0.25, inChunks, fc.constant(declared)));
}

/** Without the last chunk. Some have an extension. */
function chunks(body: string, [size, ...sizes]: readonly number[]): string {
  if (body === '') return '';
  const chunk = body.slice(0, size || undefined);
  const extension = size && size % 16 === 0 ? ';ext=1' : '';
  return `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n${chunks(body.slice(chunk.length), sizes)}`;
}

function lie(bytes: string, ...lines: string[]): Framed {
  return { lines, bytes, isHonest: false };
}
