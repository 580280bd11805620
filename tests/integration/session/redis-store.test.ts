import { expect, it } from 'bun:test';
import { RedisClient } from 'bun';
import { Budget } from '../../../src/gateway/http/admission/budget.ts';
import { ENTRY_BYTES } from '../../../src/gateway/refresh/memory-store.ts';
import { RedisConnection, type RedisLink } from '../../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../../src/gateway/refresh/redis-store.ts';
import { eventually } from '../../support/eventually.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import {
  CLAIM,
  LIFETIMES,
  newLedger,
  PATIENT,
  RENEWAL,
  redisStoreAt,
  SIGN_OUT,
} from '../../support/refresh-coordinator.ts';
import { describeWith } from '../../support/requirements.ts';
import { TextStore } from '../../support/text-store.ts';

/** The part of the script that no other script has. */
const REPLACE = 'r == ARGV[3]';

describeWith([REDIS_SERVER], 'a Redis store', () => {
  /** Two instances, and a look into their Redis. */
  async function start() {
    const redis = await startRedis();
    let [downs, ups] = [0, 0];
    const store = () =>
      new TextStore(
        redisStoreAt(redis.url, {
          onDown: () => void downs++,
          onUp: () => void (downs > 0 && ups++),
        }),
      );
    const [a, b] = [store(), store()];
    return {
      ...{ redis, a, b },
      /** Runs one command with a connection of its own, so that an outage does not break it. */
      async admin(command: string, ...values: string[]): Promise<unknown> {
        using client = new RedisAdmin(redis.url);
        return await client.send(command, values);
      },
      back: () => eventually(() => ups >= 2, 'both instances to reconnect'),
      [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose](),
    };
  }
  const key = (name: string) => `music-gateway:refresh:${name}`;

  it.each([true, false])(
    'restores a sign-out after an outage, whoever of two reconnects first: %p',
    async (byA) => {
      await using world = await start();
      const { redis, a, b, admin, back } = world;
      await redis.stop();
      await Promise.all([
        (byA ? a : b).end('k', SIGN_OUT, LIFETIMES),
        (byA ? b : a).add('k', RENEWAL, 280_000),
      ]);
      await redis.start();
      await back();
      expect(await admin('GET', key('k'))).toBe(SIGN_OUT);
      // For as long as the instance that has renewed the token would replay its pair.
      expect(await admin('PTTL', key('k'))).toBeGreaterThan(200_000);
    },
  );

  it('restores an outcome over a claim, no outcome over another, and a sign-out over any', async () => {
    await using world = await start();
    const { redis, a, b, admin, back } = world;
    await redis.stop();
    await Promise.all([a.add('claimed', RENEWAL, 60_000), a.add('known', RENEWAL, 60_000), b.get('x')]);
    await a.add('ended', RENEWAL, 280_000);
    await b.end('renewed', SIGN_OUT, LIFETIMES);
    await redis.start();
    // At once, because the instances reconnect soon.
    const set = `redis.call('SET', KEYS[1], 'claimed:c') redis.call('SET', KEYS[2], 'renewed:c')
      redis.call('SET', KEYS[3], ARGV[1], 'PX', 30000) redis.call('SET', KEYS[4], ARGV[2], 'PX', 280000)`;
    const keys = ['claimed', 'known', 'ended', 'renewed'].map(key);
    await admin('EVAL', set, '4', ...keys, SIGN_OUT, RENEWAL);
    await back();
    for (const name of ['ended', 'renewed']) {
      expect(await admin('GET', key(name))).toBe(SIGN_OUT);
      expect(await admin('PTTL', key(name))).toBeGreaterThan(200_000);
    }
    expect(await admin('GET', key('claimed'))).toBe(RENEWAL);
    expect(await admin('GET', key('known'))).toBe('renewed:c');
  });

  it('goes by its own memory for what Redis has lost, and by Redis for what it has not', async () => {
    await using world = await start();
    const { a, b, admin } = world;
    for (const name of ['add', 'end', 'get']) await a.add(name, RENEWAL, 60_000);
    expect(await b.add('add', 'renewed:b', 60_000)).toBe(RENEWAL);
    await a.add('ended', RENEWAL, 60_000);
    // Each sign-out is led on to the next token of the chain, although another instance has replaced this record.
    for (const store of [b, a]) expect(await store.end('ended', SIGN_OUT, LIFETIMES)).toBe(RENEWAL);
    await admin('FLUSHALL');
    expect(await a.get('get')).toBe(RENEWAL);
    expect(await a.end('end', SIGN_OUT, LIFETIMES)).toBe(RENEWAL);
    expect(await a.add('add', 'claimed:a', 3000)).toBe(RENEWAL);
    expect(await admin('GET', key('add'))).toBe(RENEWAL);
  });

  it('removes from Redis what has no room in its memory, but no sign-out', async () => {
    await using world = await start();
    const connection = new RedisConnection(world.redis.url, { onDown: () => {}, onUp: () => {} }, PATIENT);
    // Room for two renewals, or for one mark.
    const ledger = new Budget(12 * 4 * ENTRY_BYTES);
    const store = new TextStore(new RedisReplayStore(connection, ledger));
    for (const name of ['a', 'b', 'c']) await store.add(name, RENEWAL, 60_000);
    await eventually(async () => (await world.admin('GET', key('a'))) === null, 'the oldest to leave Redis');
    expect(await world.admin('GET', key('b'))).toBe(RENEWAL);
    await world.b.end('b', SIGN_OUT, LIFETIMES, true);
    for (const name of ['d', 'e']) await store.add(name, RENEWAL, 60_000);
    await eventually(async () => (await world.admin('GET', key('c'))) === null, 'the next to leave Redis');
    expect(await world.admin('GET', key('b'))).toBe(SIGN_OUT);
  });

  it('lets no outcome of its own win over a sign-out that comes between two commands', async () => {
    await using world = await start();
    const { redis, b, admin } = world;
    const client = new RedisClient(redis.url, { autoReconnect: false });
    let beforeReplace: (() => Promise<unknown>) | undefined;
    const link: RedisLink = {
      connect: () => client.connect(),
      close: () => client.close(),
      onclose: null,
      async send(command, parameters) {
        if (parameters[0]?.includes(REPLACE)) await beforeReplace?.();
        return client.send(command, parameters);
      },
    };
    const observer = { onDown: () => {}, onUp: () => {} };
    const a = new TextStore(
      new RedisReplayStore(new RedisConnection(redis.url, observer, PATIENT, () => link), newLedger()),
    );
    await a.add('k', RENEWAL, 60_000);
    await admin('SET', key('k'), CLAIM);
    beforeReplace = () => b.end('k', SIGN_OUT, LIFETIMES);
    expect(await a.add('k', 'claimed:a', 3000)).toBe(SIGN_OUT);
    client.close();
  });

  it('forgets a sign-out in memory too, although its time in Redis is another', async () => {
    await using world = await start();
    const { a, admin } = world;
    await a.end('k', SIGN_OUT, LIFETIMES);
    await admin('SET', key('k'), 'ended:2');
    expect(await a.replace('k', 'ended:2', 'unreachable', 1)).toBe(true);
    await eventually(async () => !(await admin('GET', key('k'))), 'the record to expire');
    expect(await a.get('k')).toBeUndefined();
  });

  it('waits only a moment for a Redis that does not respond', async () => {
    await using world = await start();
    const { redis, a } = world;
    await a.get('warm');
    redis.stall();
    const begun = performance.now();
    await a.add('k', RENEWAL, 60_000);
    await a.replace('k', RENEWAL, 'unreachable', 60_000);
    // 500 ms on an idle machine; without a limit it would wait for ever.
    expect(performance.now() - begun).toBeLessThan(1500);
    redis.resume();
  });

  it('refreshes nothing while Redis restarts empty that another instance has refreshed', async () => {
    await using world = await start();
    const { redis, a, b } = world;
    await a.add('k', RENEWAL, 280_000);
    await redis.stop();
    const asked = b.add('k', CLAIM, 3000);
    await redis.start();
    expect(await asked).toBe(RENEWAL);
  });

  it('knows after a restart of Redis what it has refreshed in place of another instance', async () => {
    await using world = await start();
    const { redis, a, b, back } = world;
    await a.add('k', 'unreachable', 60_000);
    expect(await b.replace('k', 'unreachable', CLAIM, 60_000)).toBe(true);
    expect(await b.replace('k', CLAIM, RENEWAL, 60_000)).toBe(true);
    await redis.stop();
    await redis.start();
    await back();
    expect(await a.get('k')).toBe(RENEWAL);
  });

  it('shares through a Redis that stalls for a moment, as on a busy machine', async () => {
    await using world = await start();
    const { redis, a, admin } = world;
    await a.get('warm');
    redis.stall();
    const asked = a.add('k', 'claimed:a', 3000);
    await Bun.sleep(150);
    redis.resume();
    await asked;
    await a.add('next', 'claimed:a', 3000);
    expect(await admin('GET', key('next'))).toBe('claimed:a');
  });

  it('does not take its own stall for one of Redis', async () => {
    await using world = await start();
    const { a, admin } = world;
    await a.get('warm');
    for (const stall of [(work: () => void) => work(), setImmediate]) {
      const asked = a.add(crypto.randomUUID(), 'claimed:a', 3000);
      stall(() => {
        const end = performance.now() + 200;
        while (performance.now() < end);
      });
      await asked;
      await a.add('k', RENEWAL, 60_000);
      expect(await admin('GET', key('k'))).toBe(RENEWAL);
      await admin('DEL', key('k'));
    }
  });
});
