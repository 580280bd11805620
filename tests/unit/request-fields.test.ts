import { describe, expect, it } from 'bun:test';
import { LADDER } from '../../src/gateway/admission/ladder.ts';
import { Ledger } from '../../src/gateway/admission/ledger.ts';
import { RequestBodies } from '../../src/gateway/admission/request-bodies.ts';
import { SessionLimit } from '../../src/gateway/admission/session-limit.ts';
import { parseFields, readFields } from '../../src/gateway/exchange/request-fields.ts';
import { GatewayError } from '../../src/gateway/http/errors.ts';
import { GenerationRequest } from '../../src/gateway/routes/schemas.ts';
import { expectLinear } from '../support/linear-time.ts';

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const MB = 1024 * 1024;

/** The parsed body, or why it is refused with 400. */
function parse(body: string | Buffer, type = JSON_TYPE): unknown {
  try {
    return parseFields(type, Buffer.from(body));
  } catch (error) {
    if (error instanceof GatewayError && error.status === 400) return error.key;
    throw error;
  }
}

const nested = (levels: number, open = '[', close = ']') => open.repeat(levels) + close.repeat(levels);
const listOf = (count: number, value: string) => `[${Array.from({ length: count }, () => value).join()}]`;

describe('JSON', () => {
  it.each([
    ['64 levels of lists twice', `[${nested(63)},${nested(63)}]`],
    ['64 levels of objects', `${'{"a":'.repeat(63)}{}${'}'.repeat(63)}`],
    ['1,000 braces and brackets', listOf(999, '{}')],
    ['1,000 commas', listOf(1001, '1')],
    ['brackets and commas in strings, behind escapes', JSON.stringify({ '"[{,\\': '"[{,"\\'.repeat(5000) })],
    ['code units like quotes and brackets', JSON.stringify({ a: '\u0122\u015b\u017b\u012c🎵'.repeat(5000) })],
  ])('is parsed with %s', (_, json) => {
    expect(parse(json)).toEqual(JSON.parse(json));
    expect(parse(`\ufeff${json}`)).toEqual(JSON.parse(json));
  });

  it.each([
    ...String.raw`" "\ "\" {"a":" [ ] \"[ a=b`.split(' '),
    ...['', `"${'['.repeat(2000)}`, '{"a":"\u0000"}', Buffer.from('{"\xff":1}', 'latin1')],
  ])('is refused when it is malformed: %j', (json) => {
    expect(parse(json)).toBe('bodyMalformed');
  });

  it.each([
    ['65 levels of lists', nested(65)],
    ['65 levels of both, which do not end', '[{"a":'.repeat(33)],
    ['1,001 brackets', listOf(1000, '[]')],
    ['1,001 commas of a list', listOf(1002, '1')],
    ['65 levels after strings that end with a backslash and with a quote', `["\\\\","\\"",${nested(64)}]`],
  ])('is refused before it is parsed with %s', (_, json) => {
    expect(parse(json)).toBe('bodyTooComplex');
  });
});

it('a form may have 1,000 fields, in UTF-8, with brackets and commas as it likes', () => {
  const fields = (count: number) => Array.from({ length: count }, (_, index) => `f${index}=1`).join('&');
  const a = '[,'.repeat(5000);
  expect(parse(`a=${a}&b=+%26%C3%A9%zz`, FORM_TYPE)).toEqual({ a, b: ' &é%zz' });
  expect(Object.keys(Object(parse(fields(1000), FORM_TYPE)))).toHaveLength(1000);
  expect(parse(fields(1001), FORM_TYPE)).toBe('bodyTooComplex');
  expect(parse(Buffer.from('code=\xe9', 'latin1'), FORM_TYPE)).toBe('requestInvalid');
});

it('the parameters and the letter case of a content type do not matter, and another one has no fields', () => {
  for (const type of ['application/json;charset=UTF-8', 'APPLICATION/JSON ; x=y'])
    expect(parse('{"a":1}', type)).toEqual({ a: 1 });
  // Elysia has a parser of its own for the first.
  for (const type of ['text/plain', 'application/jsonp', 'application/json, text/plain', 'application'])
    expect(parse('{"a":1}', type), type).toBeNull();
});

it('only the fields that a schema names are kept, because others would stay in memory without a reservation', async () => {
  const init = { method: 'POST', body: '{"model":"m","other":1}', headers: { 'content-type': JSON_TYPE } };
  const perSession = new SessionLimit({ maxInFlightPerSession: 0, maxGenerationsPerSession: 0 });
  const bodies = new RequestBodies('order_body', { ledger: new Ledger(MB), perSession }, LADDER.order);
  const fields = await readFields(new Request('http://gateway.test', init), bodies, GenerationRequest);
  expect(Object.keys(fields ?? {})).toEqual(Object.keys(GenerationRequest.properties));
});

it('2 MB made to cost time are judged in linear time', () => {
  const judge = (start: string, piece: string, end = '', type = JSON_TYPE) =>
    expectLinear((bytes) => parse(start + piece.repeat(bytes / piece.length) + end, type), 2 * MB, piece);
  for (const piece of ['a=b&', '%F0%9F%8E%B5', '%zz', '+']) judge('a=', piece, '', FORM_TYPE);
  for (const piece of ['{"__proto__":', '[""', ' ']) judge('', piece);
  for (const piece of ['\\"', '\\ud83c\\udfb5']) judge('{"a":"', piece, '"}');
  judge('{"a":1.', '9', '}');
});
