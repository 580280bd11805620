import { expect, it } from 'bun:test';
import { traceHeaders } from '../../src/gateway/record/trace-context.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const MADE = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/;
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

const read = (headers: Record<string, string>) => traceHeaders(new Headers(headers));

it.each(['a', '~._-', crypto.randomUUID(), 'i'.repeat(64)])('the X-Request-Id %s is kept', (id) => {
  expect(read({ 'x-request-id': id })['x-request-id']).toBe(id);
});

it.each(['', 'a b', 'a,b', 'é', '"', '{}', '/', 'a=b', 'i'.repeat(65)])(
  'the X-Request-Id %j is replaced',
  (id) => {
    const made = [read({ 'x-request-id': id }), read({})].map((headers) => headers['x-request-id']);
    expect(made).toEqual([expect.stringMatching(UUID), expect.stringMatching(UUID)]);
    expect(made[0]).not.toBe(made[1]);
  },
);

it.each(['vendor=opaque,other=1', 'é=1', `v=${'x'.repeat(511)}`])(
  'traceparent is kept with tracestate %j',
  (tracestate) => {
    const kept = read({ traceparent: TRACEPARENT, tracestate });
    const isValid = tracestate.startsWith('vendor');
    expect([kept.traceparent, kept.tracestate]).toEqual([TRACEPARENT, isValid ? tracestate : undefined]);
  },
);

it.each([
  ...['', 'no', TRACEPARENT.toUpperCase(), TRACEPARENT.replace('00-', 'ff-'), `${TRACEPARENT}-extra`],
  ...[TRACEPARENT.slice(0, -1), '00-00000000000000000000000000000000-b7ad6b7169203331-01'],
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
