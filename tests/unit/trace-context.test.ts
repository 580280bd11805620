import { describe, expect, it } from 'bun:test';
import { traceHeaders } from '../../src/gateway/record/trace-context.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const MADE = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/;
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

const read = (headers: Record<string, string>) => traceHeaders(new Headers(headers));

describe('X-Request-Id', () => {
  it.each(['a', '~._-', crypto.randomUUID(), 'i'.repeat(64)])('of the client is kept: %s', (id) => {
    expect(read({ 'x-request-id': id })['x-request-id']).toBe(id);
  });

  it.each(['', 'a b', 'a,b', 'é', '"', '{}', '/', 'a=b', 'i'.repeat(65)])('is replaced: %j', (id) => {
    expect(read({ 'x-request-id': id })['x-request-id']).toMatch(UUID);
  });

  it('differs between requests', () => {
    expect(new Set(Array.from({ length: 20 }, () => read({})['x-request-id'])).size).toBe(20);
  });
});

describe('traceparent', () => {
  it('of the client is kept, with tracestate', () => {
    const headers = { traceparent: TRACEPARENT, tracestate: 'vendor=opaque,other=1' };
    expect(read(headers)).toMatchObject(headers);
  });

  it.each([
    ...['', 'no', TRACEPARENT.toUpperCase(), TRACEPARENT.replace('00-', 'ff-'), `${TRACEPARENT}-extra`],
    ...[TRACEPARENT.slice(0, -1), '00-00000000000000000000000000000000-b7ad6b7169203331-01'],
    '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
  ])('is replaced when it is not valid, and tracestate is dropped: %j', (traceparent) => {
    const made = read({ traceparent, tracestate: 'vendor=opaque' });
    expect(made.traceparent).toMatch(MADE);
    expect(made.tracestate).toBeUndefined();
  });

  it.each(['é=1', `v=${'x'.repeat(511)}`])('is kept without the invalid tracestate %j', (tracestate) => {
    const kept = read({ traceparent: TRACEPARENT, tracestate });
    expect([kept.traceparent, kept.tracestate]).toEqual([TRACEPARENT, undefined]);
  });

  it('and X-Request-Id are replaced when Connection names them, because they were for one hop alone', () => {
    const connection = 'keep-alive, Traceparent, x-request-id';
    const made = read({ connection, traceparent: TRACEPARENT, 'x-request-id': 'mine' });
    expect(made.traceparent).toMatch(MADE);
    expect(made['x-request-id']).toMatch(UUID);
  });
});
