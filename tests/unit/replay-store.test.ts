import { heapStats } from 'bun:jsc';
import { describe, expect, it, jest } from 'bun:test';
import { LADDER } from '../../src/gateway/admission/ladder.ts';
import { Ledger } from '../../src/gateway/admission/ledger.ts';
import { FACT_BYTES } from '../../src/gateway/admission/prices.ts';
import { systemClock } from '../../src/gateway/refresh/clock.ts';
import { MemoryReplayStore } from '../../src/gateway/refresh/memory-store.ts';
import type { Fact } from '../../src/gateway/refresh/store.ts';
import { ENDED, ENDED_BY_ANYBODY, LEASE, REJECTED, RENEWAL } from '../support/facts.ts';

/** A store with room for 350 facts without text, and for 50 that strangers can cause. */
function start() {
  const time = { now: 0 };
  const ledger = new Ledger(12 * 400 * FACT_BYTES);
  const evicted: string[] = [];
  const store = new MemoryReplayStore(
    ledger,
    () => time.now,
    (key) => evicted.push(key),
  );
  const write = (key: string, to: Fact | undefined, from?: Fact) => store.swap(key, from, to, 60_000);
  const kind = async (key: string) => (await store.get(key))?.kind;
  /** Writes `<name>-0` and so on. */
  const fill = async (name: string, count: number, fact: Fact) => {
    for (let index = 0; index < count; index++) await write(`${name}-${index}`, fact);
  };
  return { time, ledger, evicted, write, kind, fill };
}

describe('MemoryReplayStore', () => {
  // How one fact replaces another: unit/refresh-coordinator.
  it('writes nothing in place of a fact that is gone', async () => {
    expect(await start().write('key', RENEWAL, LEASE)).toEqual({ isWritten: false, before: undefined });
  });

  it('forgets a fact when its lifetime is over, and frees its memory', async () => {
    const { time, ledger, kind, write, fill } = start();
    await fill('key', 20, RENEWAL);
    expect(ledger.inUse).toBe(20 * FACT_BYTES);
    time.now = 59_999;
    expect(await kind('key-0')).toBe('renewed');
    time.now = 60_000;
    expect(await kind('key-0')).toBeUndefined();
    await write('key-0', LEASE);
    expect(ledger.inUse).toBe(FACT_BYTES);
  });

  it.each<[Fact, most: number, bytes: number]>([
    [RENEWAL, 350, FACT_BYTES],
    [{ kind: 'renewed', detail: 'x'.repeat(FACT_BYTES / 1.6) }, 175, 2 * FACT_BYTES],
    [REJECTED, 50, FACT_BYTES],
    [ENDED_BY_ANYBODY, 50, FACT_BYTES],
    [ENDED, 350, FACT_BYTES],
  ])('keeps as many of the newest facts as its memory holds: %j', async (fact, most, bytes) => {
    const { ledger, evicted, kind, fill } = start();
    await fill('key', most + 1, fact);
    expect(ledger.inUse).toBe(most * bytes);
    expect(evicted).toEqual(['key-0']);
    const kinds = await Promise.all(['key-0', 'key-1', `key-${most}`].map(kind));
    expect(kinds).toEqual([undefined, fact.kind, fact.kind]);
  });

  it('evicts for a full ledger what strangers have caused, then the oldest, but nothing of the last 10 s', async () => {
    const { time, ledger, evicted, write, fill } = start();
    await write('known-old', RENEWAL);
    await fill('made-up', 2, REJECTED);
    time.now = 1;
    await write('known-young', RENEWAL);
    // The rest is in use, but for one fact.
    ledger.take(ledger.limit * LADDER.order.share - ledger.inUse - FACT_BYTES);
    time.now = 10_000;
    const evictedBy: number[] = [];
    for (let index = 0; index < 5; index++) {
      await write(`key-${index}`, LEASE);
      evictedBy.push(evicted.length);
    }
    expect(evictedBy).toEqual([0, 1, 2, 3, 3]);
    expect(evicted).toEqual(['made-up-0', 'made-up-1', 'known-old']);
  });

  it('keeps no object of what it has forgotten, however long its oldest fact stays', async () => {
    const { write, kind } = start();
    await write('oldest', RENEWAL);
    const objects = () => {
      Bun.gc(true);
      return heapStats().objectCount;
    };
    const before = objects();
    const forgotten = 50_000;
    for (let index = 0; index < forgotten; index++) {
      await write(`key-${index}`, LEASE);
      await write(`key-${index - 100}`, undefined, LEASE);
    }
    // Each that stayed would be one at least. Other tests of this process may leave or free some.
    expect(objects() - before).toBeLessThan(forgotten);
    expect(await kind('oldest')).toBe('renewed');
  });

  it('takes no more than 64 MB of a large ledger, because Redis keeps as much for each instance', async () => {
    const store = new MemoryReplayStore(new Ledger(1024 ** 4));
    const large = { ...RENEWAL, detail: 'x'.repeat(1024 ** 2) };
    for (let index = 0; index < 64; index++) await store.swap(`key-${index}`, undefined, large, 60_000);
    // Seven eighths of it, because strangers cannot cause a renewal.
    expect(await store.get('key-29')).toBeUndefined();
    expect((await store.get('key-30'))?.kind).toBe('renewed');
  });
});

it('the clock of the system calls at its interval until it is stopped', () => {
  jest.useFakeTimers();
  const work = jest.fn();
  const stop = systemClock.every(10, work);
  jest.advanceTimersByTime(29);
  expect(work).toHaveBeenCalledTimes(2);
  stop();
  jest.advanceTimersByTime(100);
  expect(work).toHaveBeenCalledTimes(2);
});
