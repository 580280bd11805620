import { describe, expect, it } from 'bun:test';
import { SignOutPlaces } from '../../src/gateway/refresh/redis-store.ts';
import { TextMemoryStore as MemoryReplayStore } from '../support/text-store.ts';

const LIFETIMES = { workedMs: 283_000, claimedMs: 23_000, unknownMs: 30_000 };

function storeAt(time: { now: number }): MemoryReplayStore {
  return new MemoryReplayStore(() => time.now);
}

/** Ends that many tokens of which nothing is known. */
async function endMadeUp(store: MemoryReplayStore, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await store.end(`made-up-${index}`, 'ended:1', LIFETIMES);
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
    await store.add('key', 'first', 1000);
    expect(await store.replace('key', 'other', 'second', 1000)).toBe(false);
    expect(await store.replace('absent', 'first', 'second', 1000)).toBe(false);
    expect(await store.replace('key', 'first', 'second', 1000)).toBe(true);
    expect(await store.get('key')).toBe('second');
  });

  it('forgets a record when its lifetime is over, and at once when it has none', async () => {
    const time = { now: 0 };
    const store = storeAt(time);
    await store.add('key', 'record', 1000);
    await store.add('short', 'record', 0);
    expect(await store.get('short')).toBeUndefined();
    time.now = 999;
    expect(await store.get('key')).toBe('record');
    time.now = 1000;
    expect(await store.get('key')).toBeUndefined();
    expect([...store.entries()]).toEqual([]);
  });

  it.each([
    ['renewed:', 50_000],
    ['claimed:', 10_000],
    ['rejected', 10_000],
    ['unreachable', 10_000],
  ])('keeps no more than so many records "%s": %i', async (record, most) => {
    const store = new MemoryReplayStore();
    for (let index = 0; index <= most; index++) await store.add(`key-${index}`, record, 60_000);
    expect([...store.entries()]).toHaveLength(most);
    expect(await store.get('key-0')).toBeUndefined();
    expect(await store.get(`key-${most}`)).toBe(record);
  });

  it('counts a record that is written again as the newest', async () => {
    const store = new MemoryReplayStore();
    for (let index = 0; index < 50_000; index++) await store.add(`key-${index}`, 'renewed:a', 60_000);
    await store.replace('key-0', 'renewed:a', 'renewed:b', 60_000);
    for (const key of ['new', 'newer']) await store.add(key, 'renewed:a', 60_000);
    expect(await store.get('key-0')).toBe('renewed:b');
    expect(await store.get('key-1')).toBeUndefined();
    expect(await store.get('key-2')).toBeUndefined();
    expect(await store.get('key-3')).toBe('renewed:a');
  });

  it('lets go of the memory of what has expired', async () => {
    const time = { now: 0 };
    const store = storeAt(time);
    for (let index = 0; index < 1000; index++) await store.add(`key-${index}`, 'record', 1000);
    time.now = 2000;
    await store.add('new', 'record', 1000);
    time.now = 0;
    expect([...store.entries()].map(([key]) => key)).toEqual(['new']);
  });
});

describe('the sign-out of a token', () => {
  it.each<[string, number, (store: MemoryReplayStore) => Promise<unknown>]>([
    ['of which nothing is known', 30_000, async () => {}],
    ['that the upstream has refused', 30_000, (store) => store.add('key', 'rejected', 60_000)],
    ['whose refresh got no response', 30_000, (store) => store.add('key', 'unreachable', 60_000)],
    ['that is being refreshed', 23_000, (store) => store.add('key', 'claimed:x', 60_000)],
    ['that was renewed', 283_000, (store) => store.add('key', 'renewed:x', 60_000)],
    ['that a refresh has issued', 283_000, (store) => store.markIssued('key', 60_000)],
    [
      'that the caller knows to have worked',
      283_000,
      (store) => store.end('key', 'ended:1', LIFETIMES, true),
    ],
  ])('%s is kept for %i ms', async (_, lifetimeMs, prepare) => {
    const time = { now: 0 };
    const store = storeAt(time);
    await prepare(store);
    const before = await store.get('key');
    expect(await store.end('key', 'ended:1', LIFETIMES)).toBe(before);
    time.now = lifetimeMs - 1;
    expect(await store.get('key')).toStartWith('ended:');
    time.now = lifetimeMs;
    expect(await store.get('key')).toBeUndefined();
  });

  it('of which nothing is known lives no longer when it is repeated', async () => {
    const time = { now: 0 };
    const store = storeAt(time);
    await store.end('key', 'ended:1', LIFETIMES);
    time.now = 29_999;
    expect(await store.end('key', 'ended:1', LIFETIMES)).toStartWith('ended:');
    time.now = 30_000;
    expect(await store.get('key')).toBeUndefined();
  });

  it('of which nothing is known makes room for a newer one beyond 10,000', async () => {
    const store = storeAt({ now: 0 });
    await endMadeUp(store, 10_001);
    expect([...store.entries()]).toHaveLength(10_000);
    expect(await store.get('made-up-0')).toBeUndefined();
    expect(await store.get('made-up-10000')).toStartWith('ended:');
  });

  it('that has worked outlives more made-up sign-outs and refreshes than fit', async () => {
    const store = storeAt({ now: 0 });
    await store.add('renewed', 'renewed:x', 280_000);
    await store.add('spent', 'renewed:x', 280_000);
    await store.end('spent', 'ended:1', LIFETIMES);
    await store.markIssued('successor', 280_000);
    await store.end('successor', 'ended:1', LIFETIMES);
    await store.markIssued('issued', 280_000);
    await endMadeUp(store, 60_000);
    for (let index = 0; index < 60_000; index++) {
      const record = ['claimed:x', 'rejected', 'unreachable'][index % 3] ?? '';
      await store.add(`refresh-${index}`, record, 60_000);
    }
    expect(await store.get('renewed')).toBe('renewed:x');
    expect(await store.get('spent')).toStartWith('ended:');
    expect(await store.get('successor')).toStartWith('ended:');
    expect(store.hasWorked('issued')).toBe(true);
    expect([...store.entries()].length).toBe(5 + 10_000 + 10_000);
  });

  it('outlives made-up claims, refusals and failures although nothing is known of it', async () => {
    const store = storeAt({ now: 0 });
    await store.end('key', 'ended:1', LIFETIMES);
    for (let index = 0; index < 20_000; index++) await store.add(`refresh-${index}`, 'claimed:x', 60_000);
    expect(await store.get('key')).toStartWith('ended:');
  });

  it('is listed after what is known to have worked', async () => {
    const store = storeAt({ now: 0 });
    await store.end('made-up', 'ended:1', LIFETIMES);
    await store.markIssued('issued', 1000);
    await store.add('renewed', 'renewed:x', 1000);
    expect([...store.entries()].map(([key]) => key)).toEqual(['renewed', 'issued', 'made-up']);
  });
});

describe('SignOutPlaces', () => {
  it('has 10,000 places, each free again after its time or when it is given back', () => {
    const time = { now: 0 };
    const places = new SignOutPlaces(() => time.now);
    const first = places.take(30_000);
    for (let index = 1; index < 10_000; index++) expect(places.take(30_000)).toBeDefined();
    expect(places.take(30_000)).toBeUndefined();
    first?.();
    expect(places.take(30_000)).toBeDefined();
    time.now = 29_999;
    expect(places.take(30_000)).toBeUndefined();
    time.now = 30_000;
    expect(places.take(30_000)).toBeDefined();
  });
});
