/** Request bodies of 2 MB that cost as much time as we could find, all of them wrong for sign-in and generate. */

const BYTES = 2 * 1024 * 1024;
const VERIFIER = 'v'.repeat(43);

export interface CostlyBody {
  readonly kind: string;
  readonly type: 'application/json' | 'application/x-www-form-urlencoded';
  readonly bytes: () => Buffer<ArrayBuffer>;
}

/** `start`, as many of `piece` as fit into 2 MB, `end`. */
function filled(start: string, piece: string | ((index: number) => string), end = ''): Buffer<ArrayBuffer> {
  const most = BYTES - Buffer.byteLength(start + end);
  if (typeof piece === 'string') {
    return Buffer.from(start + piece.repeat(Math.floor(most / Buffer.byteLength(piece))) + end);
  }
  const pieces: string[] = [];
  for (let index = 0, length = 0; ; index++) {
    const next = piece(index);
    length += Buffer.byteLength(next);
    if (length > most) return Buffer.from(start + pieces.join('') + end);
    pieces.push(next);
  }
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
  'escapes of ASCII': '\\u0041',
  'escapes of two bytes': '\\u00e9',
  'escapes of surrogate pairs': '\\ud83c\\udfb5',
  'escapes of lone surrogates': '\\ud800',
  'escapes of line ends': '\\n',
  'escapes of backslashes': '\\\\',
  'escapes of quotes': '\\"',
  'escapes that are not valid': '\\x',
  'letters between escapes': 'aaaaaaaaaaaaaaa\\n',
  'two bytes each': 'é',
  'three bytes each': '鼓',
  'four bytes each': '🎵',
  brackets: '[{',
  blanks: ' ',
  'no-break spaces': '\u00a0',
  'control characters': '\u0001',
};

const PIECES_OF_FORMS = {
  'escapes of ASCII': '%41',
  'escapes of two bytes': '%C3%A9',
  'escapes of four bytes': '%F0%9F%8E%B5',
  'escapes that are not UTF-8': '%FF',
  'escapes that are not valid': '%zz',
  'percent signs': '%',
  'plus signs': '+',
  'two bytes each': 'é',
  'four bytes each': '🎵',
};

/** What the others are compared with. */
export const PLAIN_JSON = json('plain text in one string', () => prompt('a'));
export const PLAIN_FORM = form('plain text in one field', () => code('a'));

export const COSTLY_BODIES: readonly CostlyBody[] = [
  PLAIN_JSON,
  json('lists that open', () => filled('', '[')),
  json('lists in each other', () => Buffer.from('['.repeat(BYTES / 2) + ']'.repeat(BYTES / 2))),
  json('objects that open', () => filled('', '{"a":')),
  json('__proto__ in each other', () => filled('', '{"__proto__":')),
  json('__proto__ many times', () => filled('{', '"__proto__":{},', '"k":1}')),
  json('many names', () => filled('{', (index) => `"k${index}":1,`, '"k":1}')),
  json('one name many times', () => filled('{', '"a":1,', '"a":1}')),
  json('numbers as names', () => filled('{', (index) => `"${index}":1,`, '"k":1}')),
  json('scattered numbers as names', () =>
    filled('{', (index) => `"${(index * 40_503) % 4_294_967_291}":1,`, '"k":1}'),
  ),
  json('empty objects', () => filled('[', '{},', '{}]')),
  json('empty lists', () => filled('[', '[],', '[]]')),
  json('objects without commas', () => filled('', '{}')),
  json('numbers', () => filled('[', '1,', '1]')),
  json('literals', () => filled('[', 'null,', 'null]')),
  json('empty strings', () => filled('[', '"",', '""]')),
  json('empty strings without commas', () => filled('[', '""', ']')),
  json('commas', () => filled('[', ',')),
  json('colons', () => filled('{"a"', ':')),
  json('blanks', () => filled('', ' ', '{}')),
  json('a number of many digits', () => filled('{"more":', '9', '}')),
  json('a number of many decimals', () => filled('{"more":1.', '9', '}')),
  json('a number of many zeros', () => filled('{"more":0.', '0', '1}')),
  json('an exponent of many digits', () => filled('{"more":1e', '9', '}')),
  json('a negative exponent of many digits', () => filled('{"more":1e-', '9', '}')),
  json('almost 1000 numbers of many digits', () => filled('[', () => `${'9'.repeat(2100)}.5,`, '1]')),
  json('almost 1000 names of many letters', () =>
    filled('{', (index) => `"${'a'.repeat(2100)}${index}":1,`, '"k":1}'),
  ),
  json('almost 1000 names of escapes', () =>
    filled('{', (index) => `"${'\\u0041'.repeat(350)}${index}":1,`, '"k":1}'),
  ),
  json('a name of letters', () => filled('{"', 'a', '":1}')),
  json('a name of escapes', () => filled('{"', '\\n', '":1}')),
  ...Object.entries(PIECES_OF_STRINGS).map(([what, piece]) => json(`a string: ${what}`, () => prompt(piece))),
  json('a string without an end', () => prompt('a', '')),
  json('a string of escaped quotes without an end', () => prompt('\\"', '')),
  json('bytes that are not UTF-8', () => Buffer.alloc(BYTES, 0xff)),
  json('a string that is not UTF-8 at its end', () => prompt('é', '   ').fill(0xff, BYTES - 3)),
  json('a string of Latin-1', () => Buffer.from(prompt('é').toString(), 'latin1')),
  json('zeros', () => Buffer.alloc(BYTES)),
  json('a code', () => filled(`{"code_verifier":"${VERIFIER}","code":"`, 'a', '"}')),
  json('a code of four bytes each', () => filled(`{"code_verifier":"${VERIFIER}","code":"`, '🎵', '"}')),
  json('a verifier', () => filled('{"code":"c","code_verifier":"', 'a', '"}')),
  PLAIN_FORM,
  form('fields', () => filled('', 'a=b&')),
  form('numbered fields', () => filled('', (index) => `${index}=&`)),
  form('separators', () => filled('', '&')),
  form('equal signs', () => filled('', '=')),
  form('almost 1000 fields of many letters', () => filled('', (index) => `${index}=${'a'.repeat(2100)}&`)),
  form('almost 1000 fields of escapes', () => filled('', (index) => `${index}=${'%C3%A9'.repeat(350)}&`)),
  ...Object.entries(PIECES_OF_FORMS).map(([what, piece]) => form(`a field: ${what}`, () => code(piece))),
  form('a name of escapes', () => filled('', '%C3%A9')),
  form('a prompt of blanks', () => filled('model=m&prompt=', '+')),
  form('a verifier', () => filled('code=c&code_verifier=', 'a')),
  form('bytes that are not UTF-8', () => Buffer.alloc(BYTES, 0xff)),
];
