import { describe, expect, it } from 'bun:test';
import { GatewayError } from '../../src/gateway/http/errors.ts';
import { parseFields } from '../../src/gateway/http/request-fields.ts';

const parseJson = (json: string) => parseFields('application/json', Buffer.from(json));

function refusal(parse: () => unknown): unknown {
  try {
    parse();
  } catch (error) {
    if (error instanceof GatewayError) return [error.status, error.key];
    throw error;
  }
  return 'none';
}

const nested = (levels: number, open: string, close: string) => open.repeat(levels) + close.repeat(levels);
const listOf = (count: number, value: string) => `[${Array.from({ length: count }, () => value).join()}]`;

describe('JSON within the limits', () => {
  it.each([
    ['64 levels of lists', nested(64, '[', ']')],
    ['64 levels of objects', `${'{"a":'.repeat(63)}{}${'}'.repeat(63)}`],
    ['64 levels twice', `[${nested(63, '[', ']')},${nested(63, '[', ']')}]`],
    ['1,000 brackets', listOf(999, '[]')],
    ['1,000 braces and brackets', listOf(999, '{}')],
    ['1,000 commas', listOf(1001, '1')],
    ['thousands of brackets and commas in a string', JSON.stringify({ prompt: '[{,"\\'.repeat(5000) })],
    ['an escaped quote before brackets', JSON.stringify({ prompt: `"${'['.repeat(2000)}` })],
    [
      'an escaped backslash and a quote before brackets',
      JSON.stringify({ prompt: `\\"${'['.repeat(2000)}` }),
    ],
    ['quotes as \\u0022 before brackets', `{"prompt":"\\u0022${'['.repeat(2000)}"}`],
    ['brackets in a name', JSON.stringify({ [',['.repeat(2000)]: 1 })],
    [
      'characters whose code units resemble quotes and brackets',
      JSON.stringify({ prompt: '\u0122\u015b\u017b\u012c🎵'.repeat(5000) }),
    ],
  ])('is parsed: %s', (_, json) => {
    expect(parseJson(json)).toEqual(JSON.parse(json));
  });

  it.each([
    ...['"', '"[', '"\\', '"\\"', '{"a":"', '[', '{', ']', `"${'['.repeat(2000)}`, '\\"[', '', '  \n'],
    ...['{"a":NaN}', '{"a":-Infinity}', '{"a":1,}', "{'a':1}", '/* c */ {}', '{"a":"\u0000"}', '{}{}', 'a=b'],
  ])('is refused when it is malformed: %j', (json) => {
    expect(refusal(() => parseJson(json))).toEqual([400, 'bodyMalformed']);
  });
});

describe('JSON beyond the limits', () => {
  it.each([
    ['65 levels of lists', nested(65, '[', ']')],
    ['65 levels of objects', `${'{"a":'.repeat(64)}{}${'}'.repeat(64)}`],
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
  ])('is refused: %s', (_, json) => {
    expect(refusal(() => parseJson(json))).toEqual([400, 'bodyTooComplex']);
  });
});

describe('a form', () => {
  const parseForm = (form: string | Buffer) =>
    parseFields('application/x-www-form-urlencoded', Buffer.from(form));
  const fields = (count: number) => Array.from({ length: count }, (_, index) => `f${index}=1`).join('&');

  it('may have 1,000 fields, and brackets and commas as it likes', () => {
    expect(Object.keys(Object(parseForm(fields(1000))))).toHaveLength(1000);
    expect(parseForm(`prompt=${'[,'.repeat(5000)}`)).toEqual({ prompt: '[,'.repeat(5000) });
  });

  it('is refused with more fields', () => {
    expect(refusal(() => parseForm(fields(1001)))).toEqual([400, 'bodyTooComplex']);
  });

  it('is refused when it is not UTF-8', () => {
    expect(refusal(() => parseForm(Buffer.from('code=\xe9', 'latin1')))).toEqual([400, 'requestInvalid']);
  });
});
