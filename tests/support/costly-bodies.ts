/** Request bodies of 2 MB that cost as much time as we could find, all of them wrong for sign-in and generate. */

const BYTES = 2 * 1024 * 1024;
const VERIFIER = 'v'.repeat(43);

export interface CostlyBody {
  readonly kind: string;
  readonly type: 'application/json' | 'application/x-www-form-urlencoded';
  readonly bytes: () => Buffer<ArrayBuffer>;
}

/** `start`, as many of `piece` as fit into 2 MB, `end`. */
function filled(start: string, piece: string, end = ''): Buffer<ArrayBuffer> {
  const most = BYTES - Buffer.byteLength(start + end);
  return Buffer.from(start + piece.repeat(Math.floor(most / Buffer.byteLength(piece))) + end);
}

/** `start`, the pieces as they are, `end`. */
function joined(
  start: string,
  count: number,
  piece: (index: number) => string,
  end = '',
): Buffer<ArrayBuffer> {
  return Buffer.from(start + Array.from({ length: count }, (_, index) => piece(index)).join('') + end);
}

const json = (kind: string, bytes: CostlyBody['bytes']): CostlyBody => ({
  kind: `JSON, ${kind}`,
  type: 'application/json',
  bytes,
});

const form = (kind: string, bytes: CostlyBody['bytes']): CostlyBody => ({
  kind: `form, ${kind}`,
  type: 'application/x-www-form-urlencoded',
  bytes,
});

/** The field that is judged last, after others that are right. */
const prompt = (piece: string, end = '"}') =>
  filled('{"model":"m","music_length_ms":3000,"prompt":"', piece, end);
const code = (piece: string) => filled(`code_verifier=${VERIFIER}&code=`, piece);

const PIECES_OF_STRINGS = {
  'plain text': 'a',
  'escapes of ASCII': '\\u0041',
  'escapes of surrogate pairs': '\\ud83c\\udfb5',
  'escapes of lone surrogates': '\\ud800',
  'escapes of quotes': '\\"',
  'escapes that are not valid': '\\x',
  'letters between escapes': 'aaaaaaaaaaaaaaa\\n',
  'four bytes each': '🎵',
  brackets: '[{',
  blanks: ' ',
  'control characters': '\u0001',
};

const PIECES_OF_FORMS = {
  'plain text': 'a',
  'escapes of four bytes': '%F0%9F%8E%B5',
  'escapes that are not UTF-8': '%FF',
  'escapes that are not valid': '%zz',
  'plus signs': '+',
  'four bytes each': '🎵',
};

export const COSTLY_BODIES: readonly CostlyBody[] = [
  json('lists that open', () => filled('', '[')),
  json('lists in each other', () => Buffer.from('['.repeat(BYTES / 2) + ']'.repeat(BYTES / 2))),
  json('__proto__ in each other', () => filled('', '{"__proto__":')),
  json('__proto__ many times', () => filled('{', '"__proto__":{},', '"k":1}')),
  json('many names', () => joined('{', 170_000, (index) => `"k${index}":1,`, '"k":1}')),
  json('one name many times', () => filled('{', '"a":1,', '"a":1}')),
  json('empty objects', () => filled('[', '{},', '{}]')),
  json('objects without commas', () => filled('', '{}')),
  json('numbers', () => filled('[', '1,', '1]')),
  json('empty strings without commas', () => filled('[', '""', ']')),
  json('commas', () => filled('[', ',')),
  json('colons', () => filled('{"a"', ':')),
  json('blanks', () => filled('', ' ', '{}')),
  json('a number of many digits', () => filled('{"more":', '9', '}')),
  json('a number of many decimals', () => filled('{"more":1.', '9', '}')),
  json('an exponent of many digits', () => filled('{"more":1e-', '9', '}')),
  json('almost 1000 numbers of many digits', () => joined('[', 990, () => `${'9'.repeat(2100)}.5,`, '1]')),
  json('almost 1000 names of escapes', () =>
    joined('{', 990, (index) => `"${'\\u0041'.repeat(350)}${index}":1,`, '"k":1}'),
  ),
  json('a name of escapes', () => filled('{"', '\\n', '":1}')),
  ...Object.entries(PIECES_OF_STRINGS).map(([what, piece]) => json(`a string: ${what}`, () => prompt(piece))),
  json('a string of escaped quotes without an end', () => prompt('\\"', '')),
  json('bytes that are not UTF-8', () => Buffer.alloc(BYTES, 0xff)),
  json('a string that is not UTF-8 at its end', () => prompt('é', '   ').fill(0xff, BYTES - 3)),
  json('zeros', () => Buffer.alloc(BYTES)),
  json('a code of four bytes each', () => filled(`{"code_verifier":"${VERIFIER}","code":"`, '🎵', '"}')),
  json('a verifier', () => filled('{"code":"c","code_verifier":"', 'a', '"}')),
  form('fields', () => filled('', 'a=b&')),
  form('separators', () => filled('', '&')),
  form('almost 1000 fields of escapes', () =>
    joined('', 990, (index) => `${index}=${'%C3%A9'.repeat(350)}&`),
  ),
  ...Object.entries(PIECES_OF_FORMS).map(([what, piece]) => form(`a field: ${what}`, () => code(piece))),
  form('a name of escapes', () => filled('', '%C3%A9')),
  form('a verifier', () => filled('code=c&code_verifier=', 'a')),
  form('bytes that are not UTF-8', () => Buffer.alloc(BYTES, 0xff)),
];
