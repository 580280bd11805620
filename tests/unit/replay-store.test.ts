import { describe, expect, it } from 'bun:test';
import { Budget } from '../../src/gateway/http/admission/budget.ts';
import { systemClock } from '../../src/gateway/refresh/clock.ts';
import { FACT_BYTES, MemoryReplayStore } from '../../src/gateway/refresh/memory-store.ts';
import type { Fact } from '../../src/gateway/refresh/store.ts';
import { eventually } from '../support/eventually.ts';
import { ENDED, LEASE, REJECTED, RENEWAL } from '../support/refresh-coordinator.ts';

/** Room for 350 facts without text, and for 50 that strangers can cause. */
const BYTES = 400 * FACT_BYTES;
const ISSUED: Fact = { kind: 'issued', detail: '' };

/** A store whose clock a test sets. */
function start() {
  const time = { now: 0 };
  const ledger = new Budget(12 * BYTES);
  const evicted: string[] = [];
  const onEvicted = (key: string) => evicted.push(key);
  const store = new MemoryReplayStore(ledger, () => time.now, onEvicted);
  const write = (key: string, to: Fact | undefined, lifetimeMs = 60_000, from?: Fact) =>
    store.swap(key, from, to, lifetimeMs);
  const kind = async (key: string) => (await store.get(key))?.kind;
  /** Writes `<name>-0` and so on. */
  const fill = async (name: string, count: number, record: Fact) => {
    for (let index = 0; index < count; index++) {
      const key = `${name}-${index}`;
      await (record.kind === 'ended' ? store.keepHere(key, record, 60_000) : write(key, record));
    }
  };
  return { time, ledger, evicted, write, kind, fill };
}

describe('MemoryReplayStore', () => {
  it('writes only in place of what is expected, and says what is there instead', async () => {
    const { time, write, kind } = start();
    expect(await write('key', LEASE)).toEqual({ isWritten: true });
    time.now = 10;
    const refused = { isWritten: false, before: { ...LEASE, writtenAt: 0 } };
    expect(await write('key', RENEWAL)).toEqual(refused);
    expect(await write('key', RENEWAL, 1000, { ...LEASE, detail: 'other' })).toEqual(refused);
    expect(await write('absent', RENEWAL, 1000, LEASE)).toEqual({ isWritten: false, before: undefined });
    expect(await write('key', RENEWAL, 1000, LEASE)).toEqual({ isWritten: true });
    expect(await kind('key')).toBe('renewed');
    expect(await write('key', undefined, 0, RENEWAL)).toEqual({ isWritten: true });
    expect(await kind('key')).toBeUndefined();
  });

  it('forgets a record when its lifetime is over, and frees its memory', async () => {
    const { time, ledger, kind, write, fill } = start();
    await fill('key', 20, RENEWAL);
    expect(ledger.inUse).toBe(20 * FACT_BYTES);
    time.now = 59_999;
    expect(await kind('key-0')).toBe('renewed');
    time.now = 60_000;
    expect(await kind('key-0')).toBeUndefined();
    expect(await write('key-0', LEASE)).toEqual({ isWritten: true });
    expect(ledger.inUse).toBe(FACT_BYTES);
  });

  it.each<[Fact, number]>([
    [RENEWAL, 350],
    [{ kind: 'renewed', detail: 'x'.repeat(FACT_BYTES) }, 175],
    [LEASE, 350],
    [{ kind: 'unreachable', detail: '' }, 50],
    [REJECTED, 50],
    [ENDED, 50],
  ])('keeps as many of the newest records as its memory holds: %j', async (record, most) => {
    const { ledger, evicted, kind, fill } = start();
    await fill('key', most + 1, record);
    expect(ledger.inUse).toBe(most * (FACT_BYTES + (record.detail.length > 64 ? record.detail.length : 0)));
    expect(evicted).toEqual(['key-0']);
    expect(await kind('key-0')).toBeUndefined();
    for (const index of [1, most]) expect(await kind(`key-${index}`)).toBe(record.kind);
  });

  it('takes no more than 64 MB of a large ledger, because Redis keeps as much for each instance', async () => {
    const store = new MemoryReplayStore(new Budget(1024 ** 4));
    const large = { ...RENEWAL, detail: 'x'.repeat(1024 ** 2) };
    for (let index = 0; index < 64; index++) await store.swap(`key-${index}`, undefined, large, 60_000);
    // Seven eighths of it, because strangers cannot cause a renewal.
    expect(await store.get('key-8')).toBeUndefined();
    expect((await store.get('key-9'))?.kind).toBe('renewed');
  });

  it('counts a record that is written again as the newest', async () => {
    const { write, kind, fill, evicted } = start();
    await write('mark', ISSUED);
    await fill('key', 349, RENEWAL);
    await write('key-0', { ...RENEWAL, detail: 'b' }, 60_000, RENEWAL);
    await fill('new', 2, RENEWAL);
    expect(await kind('key-0')).toBe('renewed');
    expect(evicted).toEqual(['mark', 'key-1']);
  });

  it('evicts nothing that has worked for what strangers can cause', async () => {
    const { write, kind, fill } = start();
    const known = { renewed: RENEWAL, ended: ENDED, issued: ISSUED };
    for (const [key, fact] of Object.entries(known)) await write(key, fact);
    for (const record of [REJECTED, ENDED]) await fill('made-up', 600, record);
    for (const [key, fact] of Object.entries(known)) expect(await kind(key)).toBe(fact.kind);
  });
});

it('the clock of the system calls at its interval until it is stopped', async () => {
  let calls = 0;
  const stop = systemClock.every(1, () => void calls++);
  await eventually(() => calls > 1, 'it to be called twice');
  stop();
  const before = calls;
  await Bun.sleep(10);
  expect(calls).toBe(before);
});
