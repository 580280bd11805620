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
import { ENDED, ManualClock, newLedger, RENEWAL } from '../support/refresh-coordinator.ts';

/** Stores with connections to one model of Redis. What holds in every order of events: faults/refresh-model. */
function start() {
  const clock = new ManualClock();
  const redis = new RedisModel(clock.now);
  const links = new Set<RedisLink>();
  const heard: string[] = [];
  const network = { isCut: false, opened: 0, connects: Promise.resolve(), replies: Promise.resolve() };
  const open = (): RedisLink => {
    network.opened++;
    const link: RedisLink = {
      onclose: null,
      async connect() {
        await network.connects;
        if (network.isCut) throw new Error('refused');
        links.add(link);
      },
      close: () => void links.delete(link),
      async send(_, parameters) {
        await network.replies;
        if (!links.has(link)) throw new Error('closed');
        return redis.eval(parameters);
      },
    };
    return link;
  };
  const observer = { onDown: () => void heard.push('down'), onUp: () => void heard.push('up') };
  const store = (ledger = newLedger(), timers: Clock = clock) =>
    new RedisReplayStore(new RedisConnection('redis://model', observer, timers, open), ledger, clock.now);
  /** Lets time pass until it was heard so often that Redis is up. */
  const isUp = (times: number) =>
    eventually(
      () => clock.advance(50).then(() => heard.filter((each) => each === 'up').length === times),
      'Redis',
    );
  const kept = (key: string) => redis.eval([GET, '1', `music-gateway:${key}`])?.[1]?.replace(/^\d+ /, '');
  return { clock, links, heard, network, store, isUp, kept };
}

function write(store: ReplayStore, key: string, to: Fact, from?: Fact) {
  return store.swap(key, from, to, 280_000);
}

async function kindAt(store: ReplayStore, key: string) {
  return (await store.get(key))?.kind;
}

describe('RedisReplayStore', () => {
  it('keeps a sign-out of a token that nobody knows out of Redis', async () => {
    const { store, kept } = start();
    const [a, b] = [store(), store()];
    await a.keepHere('k', ENDED, 30_000);
    expect([await kindAt(a, 'k'), await kindAt(b, 'k'), kept('k')]).toEqual(['ended', undefined, undefined]);
  });

  it('removes from Redis what has no room in its memory, but no sign-out', async () => {
    const { store, kept } = start();
    // Room for two renewals.
    const [small, other] = [store(new Budget(((12 * 8) / 7) * 2 * FACT_BYTES)), store()];
    const writeUntil = async (keys: string[], gone: string) => {
      for (const key of keys) await write(small, key, RENEWAL);
      await eventually(() => kept(gone) === undefined, `${gone} to leave Redis`);
    };
    await writeUntil(['a', 'b', 'c'], 'a');
    expect(kept('b')).toBe('renewed:x');
    await write(other, 'b', ENDED, RENEWAL);
    await writeUntil(['d', 'e'], 'c');
    expect(kept('b')).toBe('ended:0');
    await write(small, 'own', ENDED);
    await writeUntil(['f', 'g', 'h'], 'f');
    expect(kept('own')).toBe('ended:0');
  });

  it('waits 500 ms for a Redis that does not respond, and goes on alone', async () => {
    const { clock, network, heard, store, isUp } = start();
    const a = store();
    await isUp(1);
    network.replies = new Promise(() => {});
    const written = write(a, 'k', RENEWAL);
    await clock.advance(499);
    expect(heard).toEqual(['up']);
    await clock.advance(10);
    expect(await written).toEqual({ isWritten: true });
    expect(heard).toEqual(['up', 'down']);
    expect(await kindAt(a, 'k')).toBe('renewed');
  });

  it('does not take a first connection that it has given up for Redis being back', async () => {
    const { clock, network, heard, store, isUp } = start();
    const { promise, resolve } = Promise.withResolvers<void>();
    network.connects = promise;
    const read = kindAt(store(), 'k');
    await clock.advance(510);
    expect(await read).toBeUndefined();
    network.connects = Promise.resolve();
    resolve();
    // Until the second connection, which is made 250 ms later.
    await clock.advance(200);
    expect(heard).toEqual(['down']);
    await isUp(1);
    expect(network.opened).toBe(2);
  });

  it('does not take its own stall for one of Redis, and takes the reply that came meanwhile', async () => {
    const { store, network, heard, clock } = start();
    await write(store(), 'k', RENEWAL);
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
    network.replies = reply.promise;
    const read = kindAt(stalling, 'k');
    // However late the first half of the time is over, Redis gets the other. Then what has arrived is read first.
    for (const ended of [0, 1]) {
      for (const isOver of halves) isOver();
      expect(turns).toBe(ended);
    }
    reply.resolve();
    expect(await read).toBe('renewed');
    turn.resolve();
    expect(heard).not.toContain('down');
  });

  it('connects no more once it is closed, whether Redis is there or away, and tells nobody', async () => {
    const { clock, links, network, heard, store, isUp } = start();
    const [a, b] = [store(), store()];
    await isUp(2);
    a.close();
    await eventually(() => links.size === 1, 'its connection to be closed');
    expect(await write(a, 'k', RENEWAL)).toEqual({ isWritten: true });
    expect(await kindAt(b, 'k')).toBeUndefined();
    network.isCut = true;
    for (const link of links) link.onclose?.(new Error('cut'));
    await clock.advance(300);
    const { opened } = network;
    expect(opened).toBeGreaterThan(2);
    b.close();
    network.isCut = false;
    await clock.advance(5000);
    expect([network.opened, links.size, clock.running]).toEqual([opened, 0, 0]);
    expect(heard).toEqual(['up', 'up', 'down']);
  });
});
