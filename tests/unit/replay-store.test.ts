import { describe, expect, it } from 'bun:test';
import { MemoryReplayStore } from '../../src/upstream/replay-store.ts';

function storeAt(time: { now: number }): MemoryReplayStore {
  return new MemoryReplayStore(() => time.now);
}

describe('MemoryReplayStore', () => {
  it('adds a record only where there is none', async () => {
    const store = new MemoryReplayStore();
    expect(await store.add('key', 'first', 1000)).toBeUndefined();
    expect(await store.add('key', 'second', 1000)).toBe('first');
    expect(await store.get('key')).toBe('first');
  });

  it('replaces a record only when it is the expected one', async () => {
    const store = new MemoryReplayStore();
    await store.put('key', 'first', 1000);
    expect(await store.replace('key', 'other', 'second', 1000)).toBe(false);
    expect(await store.replace('absent', 'first', 'second', 1000)).toBe(false);
    expect(await store.replace('key', 'first', 'second', 1000)).toBe(true);
    expect(await store.get('key')).toBe('second');
  });

  it('puts a record and gives what was there', async () => {
    const store = new MemoryReplayStore();
    expect(await store.put('key', 'first', 1000)).toBeUndefined();
    expect(await store.put('key', 'second', 1000)).toBe('first');
  });

  it('forgets a record when its lifetime is over, and at once when it has none', async () => {
    const time = { now: 0 };
    const store = storeAt(time);
    await store.put('key', 'record', 1000);
    await store.put('short', 'record', 0);
    expect(await store.get('short')).toBeUndefined();
    time.now = 999;
    expect(await store.get('key')).toBe('record');
    time.now = 1000;
    expect(await store.get('key')).toBeUndefined();
    expect([...store.entries()]).toEqual([]);
  });

  it('keeps no more than 50,000 records: the oldest make room', async () => {
    const store = new MemoryReplayStore();
    for (let index = 0; index <= 50_000; index++) await store.put(`key-${index}`, 'record', 60_000);
    expect([...store.entries()]).toHaveLength(50_000);
    expect(await store.get('key-0')).toBeUndefined();
    expect(await store.get('key-50000')).toBe('record');
  });

  it('lets go of the memory of what has expired', async () => {
    const time = { now: 0 };
    const store = storeAt(time);
    for (let index = 0; index < 1000; index++) await store.put(`key-${index}`, 'record', 1000);
    time.now = 2000;
    await store.put('new', 'record', 1000);
    time.now = 0;
    expect([...store.entries()].map(([key]) => key)).toEqual(['new']);
  });
});
