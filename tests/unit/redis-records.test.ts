import { describe, expect, it } from 'bun:test';
import type { TokenRecord } from '../../src/gateway/refresh/record.ts';
import { encodeRecord, parseRecord } from '../../src/gateway/refresh/redis-commands.ts';

describe('a record in Redis', () => {
  it.each<[string, TokenRecord]>([
    ['claimed:a-b', { kind: 'claimed', by: 'a-b' }],
    ['renewed:c_d', { kind: 'renewed', sealedPair: 'c_d' }],
    ['rejected', { kind: 'rejected' }],
    ['unreachable', { kind: 'unreachable' }],
    ['ended:1700000000000', { kind: 'ended', clearsFrom: 1_700_000_000_000 }],
    ['of a later version', { kind: 'unreadable', text: 'of a later version' }],
  ])('has the text "%s", which instances of other versions know', (text, record) => {
    expect(encodeRecord(record)).toBe(text);
    expect(parseRecord(text)).toEqual(record);
  });
});
