import { describe, expect, it } from 'bun:test';
import { Budget } from '../../src/gateway/http/admission/budget.ts';
import { ENTRY_BYTES } from '../../src/gateway/refresh/memory-store.ts';
import type { TokenRecord } from '../../src/gateway/refresh/record.ts';
import { encodeRecord, parseRecord } from '../../src/gateway/refresh/redis-commands.ts';
import { SignOutPlaces } from '../../src/gateway/refresh/sign-out-places.ts';
import { CLAIM, LIFETIMES, RENEWAL, SIGN_OUT } from '../support/refresh-coordinator.ts';
import { TextMemoryStore } from '../support/text-store.ts';

/** Room for 250 records of renewals without text, 100 marks, 25 sign-outs that may be made up and 25 others. */
const BYTES = 400 * ENTRY_BYTES;

/** A store whose clock a test sets. */
function start() {
  const time = { now: 0 };
  const ledger = new Budget(12 * BYTES);
  const store = new TextMemoryStore(() => time.now, ledger);
  const keys = () => [...store.entries()].map(([key]) => key);
  return { time, ledger, store, keys };
}

/** Adds `<name>-0` and so on, or ends them where there is no record. */
async function fill(store: TextMemoryStore, name: string, count: number, record?: string): Promise<void> {
  for (let index = 0; index < count; index++) {
    const key = `${name}-${index}`;
    await (record === undefined ? store.end(key, SIGN_OUT, LIFETIMES) : store.add(key, record, 60_000));
  }
}

describe('MemoryReplayStore', () => {
  it('adds a record only where there is none', async () => {
    const { store } = start();
    expect(await store.add('key', 'first', 1000)).toBeUndefined();
    expect(await store.add('key', 'second', 1000)).toBe('first');
    expect(await store.get('key')).toBe('first');
  });

  it('replaces a record only when it is the expected one', async () => {
    const { store } = start();
    await store.add('key', 'first', 1000);
    expect(await store.replace('key', 'other', 'second', 1000)).toBe(false);
    expect(await store.replace('absent', 'first', 'second', 1000)).toBe(false);
    expect(await store.replace('key', 'first', 'second', 1000)).toBe(true);
    expect(await store.get('key')).toBe('second');
  });

  it('forgets a record when its lifetime is over, and at once when it has none', async () => {
    const { time, store, keys } = start();
    await store.add('key', 'record', 1000);
    await store.add('short', 'record', 0);
    expect(await store.get('short')).toBeUndefined();
    time.now = 999;
    expect(await store.get('key')).toBe('record');
    time.now = 1000;
    expect(await store.get('key')).toBeUndefined();
    expect(keys()).toEqual([]);
  });

  it('frees the memory of what has expired', async () => {
    const { time, ledger, store, keys } = start();
    await fill(store, 'key', 20, 'record');
    expect(ledger.inUse).toBe(20 * ENTRY_BYTES);
    time.now = 60_000;
    await store.add('new', 'record', 1000);
    expect(ledger.inUse).toBe(ENTRY_BYTES);
    time.now = 0;
    expect(keys()).toEqual(['new']);
  });

  it.each([
    [RENEWAL, 249],
    [`renewed:${'x'.repeat(ENTRY_BYTES)}`, 125],
    [CLAIM, 25],
    ['rejected', 25],
    ['unreachable', 25],
    [undefined, 25],
  ])('keeps as many of the newest records as its memory holds: %p', async (record, most) => {
    const { ledger, store, keys } = start();
    await fill(store, 'key', most + 1, record);
    expect(keys()).toHaveLength(most);
    expect(ledger.inUse).toBe(
      most * (ENTRY_BYTES + (record?.startsWith('renewed:') ? record.length - 8 : 0)),
    );
    expect(await store.get('key-0')).toBeUndefined();
    expect(await store.get(`key-${most}`)).toBe(record ?? SIGN_OUT);
  });

  it('counts a record that is written again as the newest', async () => {
    const { store } = start();
    await fill(store, 'key', 249, RENEWAL);
    await store.replace('key-0', RENEWAL, 'renewed:b', 60_000);
    await fill(store, 'new', 2, RENEWAL);
    expect(await store.get('key-0')).toBe('renewed:b');
    expect(await store.get('key-1')).toBeUndefined();
    expect(await store.get('key-2')).toBeUndefined();
    expect(await store.get('key-3')).toBe(RENEWAL);
  });

  it('lists sign-outs that may be made up after what is known to have worked', async () => {
    const { store, keys } = start();
    await store.end('made-up', SIGN_OUT, LIFETIMES);
    await store.markIssued('issued', 1000);
    await store.add('renewed', RENEWAL, 1000);
    expect(keys()).toEqual(['renewed', 'issued', 'made-up']);
  });
});

describe('the sign-out of a token', () => {
  it.each<[string, number, (store: TextMemoryStore) => Promise<unknown>]>([
    ['of which nothing is known', 30_000, async () => {}],
    ['that the upstream has refused', 30_000, (store) => store.add('key', 'rejected', 60_000)],
    ['whose refresh got no response', 30_000, (store) => store.add('key', 'unreachable', 60_000)],
    ['that is being refreshed', 23_000, (store) => store.add('key', CLAIM, 60_000)],
    ['that was renewed', 283_000, (store) => store.add('key', RENEWAL, 60_000)],
    ['that a refresh has issued', 283_000, (store) => store.markIssued('key', 60_000)],
    ['that the caller knows to have worked', 283_000, (store) => store.end('key', SIGN_OUT, LIFETIMES, true)],
  ])('%s is kept for %i ms', async (_, lifetimeMs, prepare) => {
    const { time, store } = start();
    await prepare(store);
    const before = await store.get('key');
    expect(await store.end('key', SIGN_OUT, LIFETIMES)).toBe(before);
    time.now = lifetimeMs - 1;
    expect(await store.get('key')).toBe(SIGN_OUT);
    time.now = lifetimeMs;
    expect(await store.get('key')).toBeUndefined();
  });

  it('of which nothing is known lives no longer when it is repeated', async () => {
    const { time, store } = start();
    await store.end('key', SIGN_OUT, LIFETIMES);
    time.now = 29_999;
    expect(await store.end('key', SIGN_OUT, LIFETIMES)).toBe(SIGN_OUT);
    time.now = 30_000;
    expect(await store.get('key')).toBeUndefined();
  });

  it('that has worked outlives more made-up sign-outs and refreshes than fit', async () => {
    const { store, keys } = start();
    await store.add('renewed', RENEWAL, 280_000);
    await store.add('spent', RENEWAL, 280_000);
    await store.markIssued('successor', 280_000);
    for (const key of ['spent', 'successor']) await store.end(key, SIGN_OUT, LIFETIMES);
    await store.markIssued('issued', 280_000);
    await fill(store, 'made-up', 600);
    for (const record of [CLAIM, 'rejected', 'unreachable']) await fill(store, record, 100, record);
    expect(await store.get('renewed')).toBe(RENEWAL);
    expect(await store.get('spent')).toBe(SIGN_OUT);
    expect(await store.get('successor')).toBe(SIGN_OUT);
    expect(store.hasWorked('issued')).toBe(true);
    expect(keys()).toHaveLength(5 + 25 + 25);
  });

  it('outlives made-up claims, refusals and failures although nothing is known of it', async () => {
    const { store } = start();
    await store.end('key', SIGN_OUT, LIFETIMES);
    await fill(store, 'refresh', 100, CLAIM);
    expect(await store.get('key')).toBe(SIGN_OUT);
  });
});

it('SignOutPlaces has 10,000 places, each free again after its time or when it is given back', () => {
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

it.each<[string, TokenRecord]>([
  ['claimed:a-b', { kind: 'claimed', by: 'a-b' }],
  ['renewed:c_d', { kind: 'renewed', sealedPair: 'c_d' }],
  ['rejected', { kind: 'rejected' }],
  ['unreachable', { kind: 'unreachable' }],
  ['ended:1700000000000', { kind: 'ended', clearsFrom: 1_700_000_000_000 }],
  ['of a later version', { kind: 'unreadable', text: 'of a later version' }],
])('A record in Redis has the text "%s", which instances of other versions know', (text, record) => {
  expect(encodeRecord(record)).toBe(text);
  expect(parseRecord(text)).toEqual(record);
});
