import { describe, expect, it } from 'bun:test';
import { Budget } from '../../src/gateway/http/admission/budget.ts';
import type { Clock } from '../../src/gateway/refresh/clock.ts';
import { FACT_BYTES } from '../../src/gateway/refresh/memory-store.ts';
import { GET } from '../../src/gateway/refresh/redis-commands.ts';
import { RedisConnection, type RedisLink } from '../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../src/gateway/refresh/redis-store.ts';
import type { Fact, ReplayStore } from '../../src/gateway/refresh/store.ts';
import { RedisModel } from '../faults/refresh-model/redis-model.ts';
import { eventually } from '../support/eventually.ts';
import { ENDED, LEASE, ManualClock, newLedger, REJECTED, RENEWAL } from '../support/refresh-coordinator.ts';

const LIFETIME_MS = 280_000;

/** A model of Redis, and stores that are connected to it. That the model is right: faults/refresh-model. */
function start() {
  const clock = new ManualClock();
  const redis = new RedisModel(clock.now);
  const links = new Set<RedisLink>();
  const heard: string[] = [];
  const network = { isCut: false, opened: 0, held: Promise.resolve() };
  const open = (): RedisLink => {
    network.opened++;
    const link: RedisLink = {
      onclose: null,
      async connect() {
        if (network.isCut) throw new Error('refused');
        links.add(link);
      },
      close: () => void links.delete(link),
      async send(_, parameters) {
        await network.held;
        if (!links.has(link)) throw new Error('closed');
        return redis.eval(parameters);
      },
    };
    return link;
  };
  const observer = { onDown: () => void heard.push('down'), onUp: () => void heard.push('up') };
  const store = (ledger = newLedger(), timers: Clock = clock, now = clock.now) =>
    new RedisReplayStore(new RedisConnection('redis://model', observer, timers, open), ledger, now);
  return {
    ...{ clock, redis, links, heard, network, store },
    ...{ a: store(), b: store() },
    /** Redis ends, with all that it has. */
    cut() {
      network.isCut = true;
      redis.empty();
      for (const link of links) link.onclose?.(new Error('cut'));
    },
    isUp: (times: number) =>
      eventually(
        () => clock.advance(50).then(() => heard.filter((each) => each === 'up').length === times),
        'Redis',
      ),
    kept: (key: string) => redis.eval([GET, '1', `music-gateway:${key}`])?.[1]?.replace(/^\d+ /, ''),
  };
}

function write(store: ReplayStore, key: string, to: Fact, from?: Fact) {
  return store.swap(key, from, to, LIFETIME_MS);
}

async function kindAt(store: ReplayStore, key: string) {
  return (await store.get(key))?.kind;
}

describe('RedisReplayStore', () => {
  it('is shared while Redis is there, alone while it is away, and sends nothing when it is back', async () => {
    const { a, b, cut, network, kept, isUp, heard } = start();
    await write(a, 'shared', RENEWAL);
    expect(await kindAt(b, 'shared')).toBe('renewed');
    cut();
    expect(await kindAt(a, 'shared')).toBe('renewed');
    expect(await kindAt(b, 'shared')).toBeUndefined();
    expect(await write(a, 'alone', RENEWAL)).toEqual({ isWritten: true });
    network.isCut = false;
    await isUp(4);
    expect(heard).toEqual(['up', 'up', 'down', 'down', 'up', 'up']);
    for (const key of ['shared', 'alone']) {
      expect(await kindAt(a, key)).toBe('renewed');
      expect(kept(key)).toBeUndefined();
    }
  });

  it('goes by its own memory for what Redis has lost, and by Redis for what it has not', async () => {
    const { a, b, redis } = start();
    await write(a, 'k', RENEWAL);
    await write(b, 'k', ENDED, RENEWAL);
    expect(await kindAt(a, 'k')).toBe('ended');
    await write(a, 'lost', RENEWAL);
    redis.empty();
    expect(await kindAt(a, 'lost')).toBe('renewed');
    expect(await kindAt(b, 'k')).toBe('ended');
    // What it remembers counts as if Redis had it, even when another instance has written less meanwhile.
    expect(await write(b, 'lost', LEASE)).toEqual({ isWritten: true });
    await write(b, 'lost', REJECTED, LEASE);
    expect(await write(a, 'lost', ENDED, RENEWAL)).toEqual({ isWritten: true });
    expect(await kindAt(b, 'lost')).toBe('ended');
  });

  it('keeps a sign-out of a token that nobody knows out of Redis', async () => {
    const { a, b, kept } = start();
    await a.keepHere('k', ENDED, 30_000);
    expect(await kindAt(a, 'k')).toBe('ended');
    expect(await kindAt(b, 'k')).toBeUndefined();
    expect(kept('k')).toBeUndefined();
  });

  it('removes from Redis what has no room in its memory, but no sign-out', async () => {
    const { b, store, kept } = start();
    // Room for two renewals.
    const small = store(new Budget(((12 * 8) / 7) * 2 * FACT_BYTES));
    for (const key of ['a', 'b', 'c']) await write(small, key, RENEWAL);
    await eventually(() => kept('a') === undefined, 'the oldest to leave Redis');
    expect(kept('b')).toBe('renewed:x');
    await write(b, 'b', ENDED, RENEWAL);
    for (const key of ['d', 'e']) await write(small, key, RENEWAL);
    await eventually(() => kept('c') === undefined, 'the next to leave Redis');
    expect(kept('b')).toBe('ended:0');
    await write(small, 'own', ENDED);
    for (const key of ['f', 'g', 'h']) await write(small, key, RENEWAL);
    await eventually(() => kept('f') === undefined, 'the one after it to leave Redis');
    expect(kept('own')).toBe('ended:0');
  });

  it.each([45_000, -45_000])(
    'gives the time of what a clock %i ms ahead has written by its own, and keeps it as long',
    async (aheadMs) => {
      const { a, clock, redis, store } = start();
      const other = store(newLedger(), clock, () => clock.now() + aheadMs);
      await write(other, 'k', RENEWAL);
      await clock.advance(1000);
      expect(await a.get('k')).toEqual({ ...RENEWAL, writtenAt: clock.now() - 1000 });
      expect((await other.get('k'))?.writtenAt).toBe(clock.now() - 1000 + aheadMs);
      expect(redis.remainingMs('music-gateway:k')).toBe(LIFETIME_MS - 1000);
    },
  );

  it('waits 500 ms for a Redis that does not respond, and goes on alone', async () => {
    const { a, clock, network, heard, isUp } = start();
    await isUp(2);
    const { promise, resolve } = Promise.withResolvers<void>();
    network.held = promise;
    const written = write(a, 'k', RENEWAL);
    await clock.advance(499);
    expect(heard).not.toContain('down');
    await clock.advance(10);
    expect(await written).toEqual({ isWritten: true });
    expect(heard).toContain('down');
    expect(await kindAt(a, 'k')).toBe('renewed');
    resolve();
  });

  it('does not take its own stall for one of Redis, and takes the reply that came meanwhile', async () => {
    const { b, store, network, heard, clock } = start();
    await write(b, 'k', RENEWAL);
    const halves = new Set<() => void>();
    const turn = Promise.withResolvers<void>();
    const every = (_: number, half: () => void) => {
      halves.add(half);
      return () => void halves.delete(half);
    };
    let turns = 0;
    const sleep = () => {
      turns++;
      return turn.promise;
    };
    const stalling = store(newLedger(), { now: clock.now, sleep, every });
    expect(await kindAt(stalling, 'absent')).toBeUndefined();
    const reply = Promise.withResolvers<void>();
    network.held = reply.promise;
    const read = kindAt(stalling, 'k');
    // However late the first half of the time is over, Redis gets the other. Then what has arrived is read first.
    for (const isOver of halves) isOver();
    expect(turns).toBe(0);
    for (const isOver of halves) isOver();
    expect(turns).toBe(1);
    reply.resolve();
    expect(await read).toBe('renewed');
    turn.resolve();
    expect(heard).not.toContain('down');
  });

  it('connects no more once it is closed, whether Redis is there or away, and tells nobody', async () => {
    const { a, b, clock, cut, links, network, heard, isUp } = start();
    await isUp(2);
    a.close();
    await eventually(() => links.size === 1, 'its connection to be closed');
    expect(await write(a, 'k', RENEWAL)).toEqual({ isWritten: true });
    expect(await kindAt(b, 'k')).toBeUndefined();
    cut();
    await clock.advance(300);
    const { opened } = network;
    expect(opened).toBeGreaterThan(2);
    b.close();
    network.isCut = false;
    await clock.advance(5000);
    expect(network.opened).toBe(opened);
    expect([links.size, clock.running]).toEqual([0, 0]);
    expect(heard).toEqual(['up', 'up', 'down']);
  });
});
