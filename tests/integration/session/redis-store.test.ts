import { expect, it } from 'bun:test';
import { Budget } from '../../../src/gateway/http/admission/budget.ts';
import { systemClock } from '../../../src/gateway/refresh/clock.ts';
import { FACT_BYTES } from '../../../src/gateway/refresh/memory-store.ts';
import { RedisConnection } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import type { Fact, ReplayStore } from '../../../src/gateway/refresh/store.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import { ENDED, LEASE, newLedger, PATIENT, RENEWAL } from '../../support/refresh-coordinator.ts';
import { describeWith } from '../../support/requirements.ts';

function write(store: ReplayStore, key: string, to: Fact, from?: Fact) {
  return store.swap(key, from, to, 280_000);
}

async function kindAt(store: ReplayStore, key: string) {
  return (await store.get(key))?.kind;
}

describeWith([REDIS_SERVER], 'a Redis store', () => {
  /** Two instances, and a look into their Redis. */
  async function start(clock?: typeof PATIENT, ...options: string[]) {
    const redis = await startRedis(...options);
    let [downs, ups] = [0, 0];
    const observer = { onDown: () => void downs++, onUp: () => void ups++ };
    const store = (ledger = newLedger(), now = Date.now) =>
      new RedisReplayStore(new RedisConnection(redis.url, observer, clock), ledger, now);
    const [a, b] = [store(), store()];
    return {
      ...{ redis, a, b, store },
      /** Runs one command with a connection of its own, so that an outage does not break it. */
      async admin(command: string, ...values: string[]): Promise<unknown> {
        using client = new RedisAdmin(redis.url);
        return await client.send(command, values);
      },
      both: () => eventually(() => ups - downs === 2, 'both instances to have Redis'),
      [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
    };
  }
  const name = (key: string) => `music-gateway:${key}`;

  it('is shared while Redis is there, alone while it is away, and sends nothing when it is back', async () => {
    await using world = await start();
    const { redis, a, b, admin, both } = world;
    await write(a, 'shared', RENEWAL);
    expect(await kindAt(b, 'shared')).toBe('renewed');
    await redis.stop();
    expect(await kindAt(a, 'shared')).toBe('renewed');
    expect(await kindAt(b, 'shared')).toBeUndefined();
    expect(await write(a, 'alone', RENEWAL)).toEqual({ isWritten: true });
    await redis.start();
    await both();
    expect(await admin('KEYS', '*')).toEqual([]);
    for (const key of ['shared', 'alone']) expect(await kindAt(a, key)).toBe('renewed');
  });

  it('goes by its own memory for what Redis has lost, and by Redis for what it has not', async () => {
    await using world = await start(PATIENT);
    const { a, b, admin } = world;
    await write(a, 'k', RENEWAL);
    await write(b, 'k', ENDED, RENEWAL);
    expect(await kindAt(a, 'k')).toBe('ended');
    await write(a, 'lost', RENEWAL);
    await admin('FLUSHALL');
    expect(await kindAt(a, 'lost')).toBe('renewed');
    expect(await kindAt(b, 'k')).toBe('ended');
    // What it remembers counts as if Redis had it, even when another instance has written less meanwhile.
    expect(await write(b, 'lost', LEASE)).toEqual({ isWritten: true });
    await write(b, 'lost', { kind: 'rejected', detail: '' }, LEASE);
    expect(await write(a, 'lost', ENDED, RENEWAL)).toEqual({ isWritten: true });
    expect(await kindAt(b, 'lost')).toBe('ended');
  });

  it('keeps a sign-out of a token that nobody knows out of Redis', async () => {
    await using world = await start(PATIENT);
    const { a, b, admin } = world;
    await a.keepHere('k', ENDED, 30_000);
    expect(await kindAt(a, 'k')).toBe('ended');
    expect(await kindAt(b, 'k')).toBeUndefined();
    expect(await admin('KEYS', '*')).toEqual([]);
  });

  it('removes from Redis what has no room in its memory, but no sign-out', async () => {
    await using world = await start(PATIENT);
    // Room for two renewals.
    const store = world.store(new Budget(((12 * 8) / 7) * 2 * FACT_BYTES));
    for (const key of ['a', 'b', 'c']) await write(store, key, RENEWAL);
    await eventually(async () => (await world.admin('GET', name('a'))) === null, 'the oldest to leave Redis');
    expect(await world.admin('GET', name('b'))).toEndWith(' renewed:x');
    await write(world.b, 'b', ENDED, RENEWAL);
    for (const key of ['d', 'e']) await write(store, key, RENEWAL);
    await eventually(async () => (await world.admin('GET', name('c'))) === null, 'the next to leave Redis');
    expect(await world.admin('GET', name('b'))).toEndWith(' ended:0');
  });

  it('gives the time of what an instance with another clock has written by its own, and keeps it as long', async () => {
    await using world = await start(PATIENT);
    const [fast, slow] = [() => Date.now() + 45_000, () => Date.now() - 45_000];
    const [ahead, behind] = [fast, slow].map((now) => world.store(newLedger(), now));
    if (!ahead || !behind) throw new Error('there are two stores');
    await write(ahead, 'ahead', RENEWAL);
    await write(behind, 'behind', RENEWAL);
    for (const [store, key, now] of [
      [behind, 'ahead', slow],
      [ahead, 'behind', fast],
    ] as const) {
      const kept = await store.get(key);
      expect(Math.abs((kept?.writtenAt ?? 0) - now())).toBeLessThan(10_000);
      expect(Math.abs(Number(await world.admin('PTTL', name(key))) - 280_000)).toBeLessThan(10_000);
    }
  });

  it('works on a cluster', async () => {
    const bus = String(await freePorts(1));
    await using redis = await startRedis('--cluster-enabled', 'yes', '--cluster-port', bus);
    using admin = new RedisAdmin(redis.url);
    await admin.send('CLUSTER', ['ADDSLOTSRANGE', '0', '16383']);
    const isReady = async () => String(await admin.send('CLUSTER', ['INFO'])).includes('cluster_state:ok');
    await eventually(isReady, 'the cluster to work');
    const heard: string[] = [];
    const { promise: isUp, resolve } = Promise.withResolvers<void>();
    const observer = { onDown: (cause: string) => void heard.push(cause), onUp: resolve };
    const store = new RedisReplayStore(new RedisConnection(redis.url, observer, PATIENT), newLedger());
    await isUp;
    await write(store, 'k', RENEWAL);
    expect(await kindAt(store, 'k')).toBe('renewed');
    expect(heard).toEqual([]);
  });

  it('waits only a moment for a Redis that does not respond', async () => {
    await using world = await start();
    const { redis, a, both } = world;
    await both();
    redis.stall();
    expect(await write(a, 'k', RENEWAL)).toEqual({ isWritten: true });
    expect(await kindAt(a, 'k')).toBe('renewed');
    redis.resume();
  });

  it('shares through a Redis that stalls for a moment, as on a busy machine', async () => {
    await using world = await start();
    const { redis, a, b, both } = world;
    await both();
    redis.stall();
    const written = write(a, 'k', LEASE);
    await Bun.sleep(150);
    redis.resume();
    await written;
    expect(await kindAt(b, 'k')).toBe('leased');
  });

  it('takes a reply that came during its own stall, although the time is over by then', async () => {
    let halfIsOver = () => {};
    const every = (_: number, work: () => void) => {
      halfIsOver = work;
      return () => {};
    };
    await using world = await start({ ...systemClock, every });
    const { a, b, both } = world;
    await both();
    await write(b, 'k', RENEWAL);
    const read = kindAt(a, 'k');
    setImmediate(() => {
      const end = performance.now() + 200;
      while (performance.now() < end);
      for (let half = 0; half < 2; half++) halfIsOver();
    });
    expect(await read).toBe('renewed');
  });

  it('does not take its own stall for one of Redis', async () => {
    await using world = await start();
    const { a, b, both } = world;
    await both();
    for (const stall of [(work: () => void) => work(), setImmediate]) {
      const key = crypto.randomUUID();
      const written = write(a, key, LEASE);
      stall(() => {
        const end = performance.now() + 200;
        while (performance.now() < end);
      });
      await written;
      expect(await kindAt(b, key)).toBe('leased');
    }
  });
});
