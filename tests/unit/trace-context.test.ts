import { expect, it } from 'bun:test';
import { traceHeaders } from '../../src/gateway/record/trace-context.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const MADE = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/;
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

const read = (headers: Record<string, string>) => traceHeaders(new Headers(headers));

it('an X-Request-Id is kept when it is well-formed, and replaced by a new one otherwise', () => {
  for (const id of ['a', '~._-', 'i'.repeat(64)])
    expect(read({ 'x-request-id': id })['x-request-id']).toBe(id);
  const odd = ['', 'a b', 'a,b', 'é', '"', '{}', '/', 'a=b', 'i'.repeat(65)];
  const made = odd.map((id) => read({ 'x-request-id': id })['x-request-id']);
  for (const id of made) expect(id).toMatch(UUID);
  expect(new Set(made).size).toBe(odd.length);
});

it.each([
  ['vendor=opaque,other=1', 'vendor=opaque,other=1'],
  ['é=1', undefined],
  [`v=${'x'.repeat(511)}`, undefined],
])('traceparent is kept with tracestate %j, which becomes %j', (tracestate, kept) => {
  const { 'x-request-id': _, ...context } = read({ traceparent: TRACEPARENT, tracestate });
  expect<object>(context).toEqual({ traceparent: TRACEPARENT, tracestate: kept });
});

it.each([
  ...['', TRACEPARENT.toUpperCase(), TRACEPARENT.replace('00-', 'ff-'), `${TRACEPARENT}-extra`],
  TRACEPARENT.slice(0, -1),
  '00-00000000000000000000000000000000-b7ad6b7169203331-01',
  '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
])('the traceparent %j is replaced, and tracestate is dropped', (traceparent) => {
  const made = read({ traceparent, tracestate: 'vendor=opaque' });
  expect([made.traceparent, made.tracestate]).toEqual([expect.stringMatching(MADE), undefined]);
});

it('traceparent and X-Request-Id are replaced when Connection names them, because they were for one hop alone', () => {
  const connection = 'keep-alive, Traceparent, x-request-id';
  const made = read({ connection, traceparent: TRACEPARENT, 'x-request-id': 'mine' });
  expect(made.traceparent).toMatch(MADE);
  expect(made['x-request-id']).toMatch(UUID);
});
