import { describe, expect, it } from 'bun:test';
import { Budget } from '../../src/gateway/http/admission/budget.ts';
import { RequestBodies } from '../../src/gateway/http/admission/request-bodies.ts';
import { GatewayError } from '../../src/gateway/http/errors.ts';
import { parseFields, readFields } from '../../src/gateway/http/request-fields.ts';
import { GenerationRequest } from '../../src/gateway/routes/schemas.ts';

const FORM = 'application/x-www-form-urlencoded';
const MB = 1024 * 1024;

const parseJson = (json: string | Buffer) => parseFields('application/json', Buffer.from(json));
const parseForm = (form: string | Buffer) => parseFields(FORM, Buffer.from(form));

function refusal(parse: () => unknown): unknown {
  try {
    parse();
  } catch (error) {
    if (error instanceof GatewayError) return error.status === 400 ? error.key : error.status;
    throw error;
  }
  return 'none';
}

const nested = (levels: number, open: string, close: string) => open.repeat(levels) + close.repeat(levels);
const listOf = (count: number, value: string) => `[${Array.from({ length: count }, () => value).join()}]`;

describe('JSON', () => {
  it.each([
    ['64 levels of lists', nested(64, '[', ']')],
    ['64 levels of objects', `${'{"a":'.repeat(63)}{}${'}'.repeat(63)}`],
    ['64 levels twice', `[${nested(63, '[', ']')},${nested(63, '[', ']')}]`],
    ['1,000 braces and brackets', listOf(999, '{}')],
    ['1,000 commas', listOf(1001, '1')],
    ['brackets and commas in a string, behind escapes', JSON.stringify({ a: '"[{,"\\'.repeat(5000) })],
    ['an escaped backslash and a quote before brackets', JSON.stringify({ a: `\\"${'['.repeat(2000)}` })],
    ['a quote as \\u0022 before brackets', `{"a":"\\u0022${'['.repeat(2000)}"}`],
    ['brackets in a name', JSON.stringify({ [',['.repeat(2000)]: 1 })],
    ['code units like quotes and brackets', JSON.stringify({ a: '\u0122\u015b\u017b\u012c🎵'.repeat(5000) })],
  ])('is parsed with %s', (_, json) => {
    expect(parseJson(json)).toEqual(JSON.parse(json));
    expect(parseJson(`\ufeff${json}`)).toEqual(JSON.parse(json));
  });

  it.each([
    ...['"', '"[', '"\\', '"\\"', '{"a":"', '[', '{', ']', `"${'['.repeat(2000)}`, '\\"[', '', '  \n'],
    ...['{"a":NaN}', '{"a":-Infinity}', '{"a":1,}', "{'a':1}", '/* c */ {}', '{"a":"\u0000"}', '{}{}', 'a=b'],
    ...[Buffer.from('{"\xff":1}', 'latin1'), Buffer.from('{"a":1}', 'utf16le')],
  ])('is refused when it is malformed: %j', (json) => {
    expect(refusal(() => parseJson(json))).toBe('bodyMalformed');
  });

  it.each([
    ['65 levels of lists', nested(65, '[', ']')],
    ['65 levels of both', nested(33, '[{"a":', '}]')],
    ['65 levels that do not end', '['.repeat(65)],
    ['1,001 brackets', listOf(1000, '[]')],
    ['1,001 braces', listOf(1000, '{}')],
    ['1,001 commas', listOf(1002, '1')],
    ['1,001 commas of an object', `{${Array.from({ length: 1002 }, (_, index) => `"${index}":1`).join()}}`],
    ['65 levels after a string that ends with a backslash', `["\\\\",${nested(64, '[', ']')}]`],
    ['65 levels after a string that ends with a quote', `["\\"",${nested(64, '[', ']')}]`],
    ['1,001 commas between strings of commas', listOf(1002, '","')],
    ['65 levels after a character of four bytes', `["🎵",${nested(64, '[', ']')}]`],
  ])('is refused before it is parsed with %s', (_, json) => {
    expect(refusal(() => parseJson(json))).toBe('bodyTooComplex');
  });
});

describe('a form', () => {
  const fields = (count: number) => Array.from({ length: count }, (_, index) => `f${index}=1`).join('&');

  it('may have 1,000 fields, and brackets and commas as it likes', () => {
    expect(Object.keys(Object(parseForm(fields(1000))))).toHaveLength(1000);
    expect(parseForm(`a=${'[,'.repeat(5000)}&b=+%26%C3%A9%zz`)).toEqual({
      a: '[,'.repeat(5000),
      b: ' &é%zz',
    });
  });

  it('is refused with more fields, and when it is not UTF-8', () => {
    expect(refusal(() => parseForm(fields(1001)))).toBe('bodyTooComplex');
    expect(refusal(() => parseForm(Buffer.from('code=\xe9', 'latin1')))).toBe('requestInvalid');
  });
});

// A quadratic parser would take hours.
it.each<[type: 'JSON' | 'form', start: string, piece: string, end: string, outcome: string]>([
  ['JSON', '', '{"__proto__":', '', 'bodyTooComplex'],
  ['JSON', '{', '"a":1,', '"a":1}', 'bodyTooComplex'],
  ['JSON', '[', '""', ']', 'bodyMalformed'],
  ['JSON', '{"a"', ':', '', 'bodyMalformed'],
  ['JSON', '{"a":"', '\\"', '', 'bodyMalformed'],
  ['JSON', '{"a":"', '\\ud83c\\udfb5', '"}', 'none'],
  ['JSON', '{"a":1.', '9', '}', 'none'],
  ['JSON', '', ' ', '{}', 'none'],
  ['form', '', 'a=b&', '', 'bodyTooComplex'],
  ['form', 'a=', '%F0%9F%8E%B5', '', 'none'],
  ['form', 'a=', '%zz', '', 'none'],
  ['form', 'a=', '+', '', 'none'],
])(
  '2 MB of %s made to cost time are judged at once: %s%s%s',
  (type, start, piece, end, outcome) => {
    const body = start + piece.repeat((2 * MB) / piece.length) + end;
    expect(refusal(() => (type === 'JSON' ? parseJson(body) : parseForm(body)))).toBe(outcome);
  },
  20_000,
);

describe('readFields()', () => {
  const read = (body: string, type = 'application/json') => {
    const request = new Request('http://gateway.test', {
      method: 'POST',
      body,
      headers: { 'content-type': type },
    });
    return readFields(request, new RequestBodies(new Budget(MB)), GenerationRequest);
  };

  it.each([
    ...['application/json; charset=utf-8', 'application/json;charset=UTF-8', 'APPLICATION/JSON'],
    ...['application/json ; x=y', `${FORM}; charset=UTF-8`],
  ])('reads %s', async (type) => {
    const body = type.startsWith(FORM) ? 'model=m' : '{"model":"m"}';
    expect(await read(body, type)).toMatchObject({ model: 'm', prompt: undefined });
  });

  it.each([
    // Elysia has parsers of its own for the first three.
    ...['text/plain', 'multipart/form-data; boundary=x', 'application/octet-stream', 'text/json', ''],
    ...['application/jsonp', 'application/ld+json', 'application/json, text/plain', 'application'],
  ])('finds no fields in another content type: "%s"', async (type) => {
    expect(await read('{"model":"m"}', type)).toBeNull();
  });

  it.each(['null', 'true', '1', '"text"', '[]', '[{"model":"m"}]'])('finds no fields in %s', async (json) => {
    expect(await read(json)).toBeNull();
  });

  it('takes no field from a prototype, and keeps no other field', async () => {
    const others = '"__proto__":{"is_public":true},"constructor":{"prototype":{"is_public":true}},"price":0';
    const fields = await read(`{${others},"toString":1,"data":{"is_public":true},"model":"m"}`);
    const keys = ['model', 'prompt', 'music_length_ms', 'force_instrumental', 'is_public'];
    expect(fields).toStrictEqual({ ...Object.fromEntries(keys.map((key) => [key, undefined])), model: 'm' });
  });
});
