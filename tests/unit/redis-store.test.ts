import { describe, expect, it, mock, spyOn } from 'bun:test';
import { Ledger } from '../../src/gateway/admission/ledger.ts';
import { FACT_BYTES } from '../../src/gateway/admission/prices.ts';
import type { Clock } from '../../src/gateway/refresh/clock.ts';
import { lifetimesFor, markKey } from '../../src/gateway/refresh/facts.ts';
import { PresentedTokens } from '../../src/gateway/refresh/presented-tokens.ts';
import { GET } from '../../src/gateway/refresh/redis-commands.ts';
import { RedisConnection } from '../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../src/gateway/refresh/redis-store.ts';
import type { Fact, ReplayStore } from '../../src/gateway/refresh/store.ts';
import { RedisModel, redisNetwork } from '../faults/refresh-model/redis-model.ts';
import { ProcessClock, VirtualTime } from '../faults/refresh-model/virtual-time.ts';
import { ENDED, ENDED_BY_ANYBODY, LEASE, newLedger, RENEWAL } from '../support/facts.ts';
import { startWorld, testSettings } from '../support/world.ts';

/** Stores with connections to one model of Redis. What holds in every order of small plans: faults/refresh-model. */
function start() {
  const time = new VirtualTime(() => 0);
  const redis = new RedisModel(() => time.now);
  const network = redisNetwork(time, redis);
  const clock = new ProcessClock(time, 0);
  const heard: string[] = [];
  const open = () => network.open(clock);
  const observer = { onDown: () => void heard.push('down'), onUp: () => void heard.push('up') };
  const store = (ledger = newLedger(), timers: Clock = clock) =>
    new RedisReplayStore(new RedisConnection('redis://model', observer, timers, open), ledger, clock);
  const write = (to: ReplayStore, key: string, fact: Fact, from?: Fact) =>
    time.wait(to.swap(key, from, fact, 280_000));
  const kindAt = async (from: ReplayStore, key: string) => (await time.wait(from.get(key)))?.kind;
  const kept = (key: string) => redis.eval([GET, '1', `music-gateway:${key}`])?.[1]?.replace(/^\d+ /, '');
  return { time, clock, network, heard, store, write, kindAt, kept };
}

describe('RedisReplayStore', () => {
  it('removes from Redis what has no room in its memory, but no lease and no end of a real session', async () => {
    const { time, store, write, kept } = start();
    // Room for two renewals.
    const [small, other] = [store(new Ledger(((12 * 8) / 7) * 2 * FACT_BYTES)), store()];
    const writeRenewals = async (...keys: string[]) => {
      for (const key of keys) await write(small, key, RENEWAL);
      await time.pass(100);
    };
    await writeRenewals('a', 'b', 'c');
    expect([kept('a'), kept('b')]).toEqual([undefined, 'renewed:x']);
    await write(other, 'b', ENDED, RENEWAL);
    await writeRenewals('d', 'e');
    expect([kept('c'), kept('b')]).toEqual([undefined, 'ended:0']);
    await write(small, 'own', ENDED);
    await write(small, 'leased', LEASE);
    await writeRenewals('f', 'g', 'h');
    expect(['f', 'own', 'leased'].map(kept)).toEqual([undefined, 'ended:0', 'leased:forged']);
    // Strangers have an eighth of the memory, in which there is no room for one.
    await write(small, 'made up', ENDED_BY_ANYBODY);
    await time.pass(100);
    expect(kept('made up')).toBeUndefined();
  });

  it.each<[string, alone: Fact, meanwhile: Fact | undefined, awayMs: number, kept: string | undefined]>([
    ['a renewal', RENEWAL, undefined, 3000, 'renewed:x'],
    ['a renewal, whose lease another has taken', RENEWAL, LEASE, 3000, 'renewed:x'],
    ['an end', ENDED, RENEWAL, 3000, 'ended:0'],
    ['a renewal, but not over an end', RENEWAL, ENDED, 3000, 'ended:0'],
    ['nothing after a long outage', RENEWAL, undefined, 11_000, 'leased:forged'],
    ['no lease', { kind: 'leased', detail: 'own' }, undefined, 3000, 'leased:forged'],
  ])(
    'writes what was learned without Redis when it is back: %s',
    async (_, alone, meanwhile, awayMs, expected) => {
      const { time, network, store, write, kept } = start();
      const [a, b] = [store(), store()];
      await write(a, 'k', LEASE);
      if (meanwhile) await write(b, 'k', meanwhile, LEASE);
      network.become('cut');
      expect(await write(a, 'k', alone, LEASE)).toMatchObject({ isWritten: true });
      await time.pass(awayMs);
      network.become('up');
      await time.pass(1000);
      expect(kept('k')).toBe(expected);
    },
  );

  it('writes what was learned without Redis also when strangers have made up a flood of sign-outs', async () => {
    const { time, network, store, write, kept } = start();
    const a = store();
    await write(a, 'k', LEASE);
    network.become('cut');
    for (let each = 0; each < 1000; each++) await write(a, `made up ${each}`, ENDED_BY_ANYBODY);
    expect(await write(a, 'k', RENEWAL, LEASE)).toMatchObject({ isWritten: true });
    network.become('up');
    await time.pass(2000);
    expect([kept('k'), kept('made up 0')]).toEqual(['renewed:x', 'ended:']);
  });

  it('does not keep a lease for longer that began without Redis', async () => {
    const { time, network, store, write, kept } = start();
    const a = store();
    const reissued: Fact = { kind: 'reissued', detail: 'x' };
    await write(a, 'other', LEASE);
    network.become('cut');
    await write(a, 'k', reissued);
    expect(await time.wait(a.swap('k', reissued, LEASE, 3000))).toMatchObject({ isWritten: true });
    network.become('up');
    // As if the instance had died.
    await time.pass(3500);
    expect(kept('k')).toBeUndefined();
  });

  it('keeps the end that another one has written, as old as it is, when Redis is lost', async () => {
    const { time, network, store, write } = start();
    const [a, b] = [store(), store()];
    await write(b, 'k', ENDED);
    await time.pass(3000);
    const found = await time.wait(a.get('k'));
    if (!found) throw new Error('nothing is shared');
    a.keep('k', found, 280_000);
    network.become('cut');
    expect(await time.wait(a.get('k'))).toEqual(found);
  });

  it('remembers a sign-out also here when a refresh ends at the same moment', async () => {
    const { time, network, store, write, kindAt } = start();
    const a = store();
    await write(a, 'k', LEASE);
    const [refresh, signOut] = [undefined, ENDED].map((to) => a.swap('k', LEASE, to, 280_000));
    expect(await time.wait(Promise.all([refresh, signOut]))).toMatchObject([
      { isWritten: true },
      { isWritten: true },
    ]);
    network.become('stalled');
    expect(await kindAt(a, 'k')).toBe('ended');
  });

  it('waits 500 ms for its first connection, and does not take it for Redis being back afterwards', async () => {
    const { time, network, heard, store } = start();
    using opened = spyOn(network, 'open');
    network.become('stalled');
    const read = store().get('k');
    await time.pass(499);
    expect(heard).toEqual([]);
    await time.pass(1);
    expect(await read).toBeUndefined();
    network.become('up');
    // The second connection is made 250 ms later.
    await time.pass(249);
    expect(heard).toEqual(['down']);
    await time.run(() => heard.at(-1) === 'up');
    expect(opened).toHaveBeenCalledTimes(2);
  });

  it('replaces a link whose reply is lost, and takes what Redis has executed for written', async () => {
    const { time, network, clock, heard, kept } = start();
    const observer = { onDown: () => void heard.push('down'), onUp: () => void heard.push('up') };
    let links = 0;
    let isLost = false;
    const open = () => {
      const link = network.open(clock);
      const send = link.send.bind(link);
      const isFirst = links++ === 0;
      return Object.assign(link, {
        send(command: string, parameters: string[]) {
          const reply = send(command, parameters);
          return isFirst && isLost ? new Promise(() => {}) : reply;
        },
      });
    };
    const connection = new RedisConnection('redis://model', observer, clock, open);
    const replaced = new RedisReplayStore(connection, newLedger(), clock);
    await time.wait(replaced.swap('k', undefined, LEASE, 3000));
    isLost = true;
    const swaps = [replaced.swap('k', LEASE, RENEWAL, 3000), replaced.swap('other', RENEWAL, ENDED, 3000)];
    expect(await time.wait(Promise.all(swaps))).toEqual([
      { isWritten: true, before: undefined },
      { isWritten: false, before: undefined },
    ]);
    expect([kept('k'), heard, links]).toEqual(['renewed:x', ['up'], 2]);
  });

  it('has a token that was presented without it marked by a later request', async () => {
    const { time, clock, network, store, kindAt } = start();
    const [a, b] = [store(), store()];
    const presentedAt = (at: ReplayStore) =>
      new PresentedTokens({ store: at, clock, lifetimes: lifetimesFor(testSettings()) });
    await time.wait(presentedAt(a).issue('t2'));
    const presented = presentedAt(b);
    network.become('cut');
    presented.note('t2');
    await time.pass(1000);
    network.become('up');
    await time.pass(1000);
    expect(await kindAt(a, markKey('t2'))).toBe('issued');
    presented.note('t2');
    await time.pass(1000);
    expect(await kindAt(a, markKey('t2'))).toBe('presented');
  });

  it('keeps an idle link alive, and notices when Redis does not respond', async () => {
    const { time, network, clock, heard } = start();
    const observer = { onDown: () => void heard.push('down'), onUp: () => void heard.push('up') };
    const sent: string[] = [];
    const open = () => {
      const link = network.open(clock);
      const send = link.send.bind(link);
      return Object.assign(link, {
        send(command: string, parameters: string[]) {
          sent.push(parameters[2] ?? '');
          return send(command, parameters);
        },
      });
    };
    new RedisConnection('redis://model', observer, clock, open).keepAlive();
    await time.pass(1000);
    sent.length = 0;
    await time.pass(60_000);
    expect(sent).toEqual(['music-gateway:keep-alive', 'music-gateway:keep-alive']);
    network.become('stalled');
    await time.pass(31_500);
    expect(heard).toEqual(['up', 'down']);
  });

  it('is kept alive by a gateway that uses Redis', async () => {
    using keepAlive = spyOn(RedisConnection.prototype, 'keepAlive');
    await using _world = startWorld({ REDIS_URL: 'redis://127.0.0.1:1' });
    expect(keepAlive).toHaveBeenCalledTimes(1);
  });

  it('does not take its own stall for one of Redis, and takes the reply that came meanwhile', async () => {
    const { time, clock, network, heard, store, write, kindAt } = start();
    await write(store(), 'k', RENEWAL);
    const halves = new Set<() => void>();
    const turn = Promise.withResolvers<void>();
    const every = (_: number, half: () => void) => {
      halves.add(half);
      return () => void halves.delete(half);
    };
    const sleep = mock(() => turn.promise);
    const stalling = store(newLedger(), { now: clock.now, sleep, every });
    await kindAt(stalling, 'absent');
    network.become('stalled');
    const read = stalling.get('k');
    await time.pass(1);
    // However late the first half of the time is over, Redis gets the other. Then what has arrived is read first.
    for (const turns of [0, 1]) {
      for (const isOver of halves) isOver();
      expect(sleep).toHaveBeenCalledTimes(turns);
    }
    network.become('up');
    expect((await time.wait(read))?.kind).toBe('renewed');
    turn.resolve();
    expect(heard).not.toContain('down');
  });
});
