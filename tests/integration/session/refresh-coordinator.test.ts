import { afterEach, describe, expect, it, setSystemTime } from 'bun:test';
import { type Clock, systemClock } from '../../../src/gateway/refresh/clock.ts';
import type { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import { MemoryReplayStore } from '../../../src/gateway/refresh/memory-store.ts';
import { type RefreshOutcome, recordKey, recordOf } from '../../../src/gateway/refresh/record.ts';
import type { ReplayStore, Swapped } from '../../../src/gateway/refresh/store.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { eventually } from '../../support/eventually.ts';
import { REDIS_SERVER, RedisAdmin, startRedis } from '../../support/redis.ts';
import {
  LEASE,
  ManualClock,
  newLedger,
  newRequestRecord,
  PATIENT,
  RENEWAL,
  redisStoreAt,
  refreshCoordinatorOver,
} from '../../support/refresh-coordinator.ts';
import { describeWith } from '../../support/requirements.ts';
import { SharedUpstream } from '../../support/rotating-upstream.ts';
import { LOGOUT, REFRESH, reply, silence } from '../../support/session-calls.ts';

const PAIR = { access_token: 'a2', refresh_token: 't2' };

afterEach(() => void setSystemTime());

interface Stores extends AsyncDisposable {
  readonly first: ReplayStore;
  readonly second: ReplayStore;
}

type StartStores = (clock: Clock) => Promise<Stores>;

async function inMemory(clock: Clock): Promise<Stores> {
  const store = new MemoryReplayStore(newLedger(), () => clock.now());
  return { first: store, second: store, [Symbol.asyncDispose]: async () => {} };
}

async function inRedis(): Promise<Stores> {
  const redis = await startRedis();
  const [first, second] = [redisStoreAt(redis.url, {}, PATIENT), redisStoreAt(redis.url, {}, PATIENT)];
  return { first, second, [Symbol.asyncDispose]: () => redis[Symbol.asyncDispose]() };
}

async function startTwo(startStores: StartStores, environment: Environment = {}) {
  const clock = new ManualClock();
  const stores = await startStores(clock);
  const upstream = new SharedUpstream();
  const response = Promise.withResolvers<Response>();
  upstream.on(REFRESH, () => response.promise).on(LOGOUT, reply(204));
  const [a, b] = [stores.first, stores.second].map((store) =>
    refreshCoordinatorOver(store, upstream, environment, clock),
  );
  if (!a || !b) throw new Error('there are two stores');
  const traces = [newRequestRecord(), newRequestRecord()] as const;
  return {
    ...{ upstream, response, stores, clock, traces, a, b },
    /** Both need the refresh of one token, and time passes until both have its outcome. */
    async outcomes(stepMs = 40) {
      let hasSettled = false;
      const both = Promise.all([
        a.refresh('t1', traces[0], clock.now()),
        b.refresh('t1', traces[1], clock.now()),
      ]);
      void both.finally(() => {
        hasSettled = true;
      });
      await eventually(() => clock.advance(stepMs).then(() => hasSettled), 'both outcomes');
      return (await both).map(({ kind }) => kind);
    },
    async [Symbol.asyncDispose]() {
      await stores[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

function coordinationOver(startStores: StartStores): void {
  it('makes one refresh however long it takes, and prolongs its lease no longer than that', async () => {
    await using two = await startTwo(startStores, { TIMEOUT_SIGN_IN_MS: '120000' });
    const { upstream, clock } = two;
    const outcomes = two.outcomes(200);
    await upstream.arrived(REFRESH);
    // Several times as long as a lease lives that is not prolonged.
    const laterThan = clock.now() + 12_000;
    await eventually(() => clock.now() > laterThan, 'the lease to need its prolongation');
    two.response.resolve(Response.json(PAIR));
    expect(await outcomes).toEqual(['renewed', 'renewed']);
    expect(upstream.calls).toEqual([REFRESH]);
    expect(two.traces.map(({ refresh }) => refresh).toSorted()).toEqual(['renewed', 'shared']);
    expect(clock.running).toBe(0);
  });

  it('refreshes when the lease of an instance that has crashed is over, once', async () => {
    await using two = await startTwo(startStores);
    await two.stores.first.swap(recordKey('t1'), undefined, LEASE, 3000);
    two.upstream.on(REFRESH, reply(200, PAIR));
    expect(await two.outcomes()).toEqual(['renewed', 'renewed']);
    expect(two.upstream.calls).toEqual([REFRESH]);
    expect(two.upstream.last(REFRESH).body).toBe('{"refresh_token":"t1"}');
    expect(two.traces.map(({ refresh }) => refresh).toSorted()).toEqual(['renewed', 'shared']);
  });

  it('gives up when a lease stays longer than any refresh, without a refresh', async () => {
    await using two = await startTwo(startStores, { TIMEOUT_SIGN_IN_MS: '1500' });
    await two.stores.first.swap(recordKey('t1'), undefined, LEASE, 600_000);
    const startedAt = two.clock.now();
    expect(await two.outcomes()).toEqual(['unreachable', 'unreachable']);
    expect(two.clock.now() - startedAt).toBeWithin(4500, 9000);
    expect(two.upstream.calls).toEqual([]);
  });

  // The timeout takes real time, so the clock goes in small steps until then: the claim must not be taken over before.
  it.each<
    [string, RefreshOutcome['kind'], timeoutMs: number, stepMs: number, () => Response | Promise<Response>]
  >([
    ['a refusal', 'rejected', 20_000, 40, reply(401)],
    ['no response', 'unreachable', 500, 2, silence],
  ])('makes one call for both when there is %s', async (_, kind, timeoutMs, stepMs, respond) => {
    await using two = await startTwo(startStores, { TIMEOUT_SIGN_IN_MS: String(timeoutMs) });
    two.upstream.on(REFRESH, respond);
    expect(await two.outcomes(stepMs)).toEqual([kind, kind]);
    expect(two.upstream.calls).toEqual([REFRESH]);
  });

  it.each([
    ['has expired', undefined],
    ['is that of another instance', { ...LEASE, detail: 'of another' }],
  ])('keeps its pair on record although its lease %s by then', async (_, lease) => {
    await using two = await startTwo(startStores);
    const { a, b, upstream, clock } = two;
    const refreshing = a.refresh('t1', newRequestRecord(), clock.now());
    await upstream.arrived(REFRESH);
    for (const store of new Set([two.stores.first, two.stores.second])) {
      const key = recordKey('t1');
      await store.swap(key, await store.get(key), lease, 3000);
    }
    two.response.resolve(Response.json(PAIR));
    expect((await refreshing).kind).toBe('renewed');
    const record = newRequestRecord();
    expect((await b.refresh('t1', record, clock.now())).kind).toBe('renewed');
    expect(record.refresh).toBe('replayed');
    expect(upstream.calls).toEqual([REFRESH]);
  });

  it('knows the token that the upstream gives for a reuse, so that its sign-out counts for both and stays', async () => {
    await using two = await startTwo(startStores);
    const { a, b, upstream, clock } = two;
    upstream.on(REFRESH, reply(200, PAIR));
    await a.refresh('t1', newRequestRecord(), clock.now());
    upstream.on(REFRESH, reply(200, { access_token: 'a9', refresh_token: 't9' }));
    const record = newRequestRecord();
    expect((await a.refresh('t1', record, clock.now() + 61_000)).kind).toBe('renewed');
    expect(record.refreshTokenReused).toBe('late');
    await b.end('t9');
    // Longer than that of an unknown token is remembered.
    await clock.advance(31_000);
    expect((await a.refresh('t9', newRequestRecord(), clock.now())).kind).toBe('ended');
    expect(upstream.calls).toHaveLength(2);
  });

  it('takes a record that does not open for no verdict', async () => {
    await using two = await startTwo(startStores);
    await two.stores.first.swap(recordKey('t1'), undefined, RENEWAL, 60_000);
    expect(await two.outcomes()).toEqual(['unreachable', 'unreachable']);
    expect(two.upstream.calls).toEqual([]);
  });

  it('closes the window for both 10 s after the successor was presented to one', async () => {
    await using two = await startTwo(startStores);
    const { a, b, upstream, clock } = two;
    upstream.on(REFRESH, reply(200, PAIR));
    const presentedAt = clock.now();
    expect((await a.refresh('t1', newRequestRecord(), presentedAt)).kind).toBe('renewed');
    b.presented.note('t2');
    upstream.on(REFRESH, reply(401));
    for (const each of [a, b]) {
      expect((await each.refresh('t1', newRequestRecord(), presentedAt + 2000)).kind).toBe('renewed');
    }
    expect(upstream.calls).toHaveLength(1);
    const record = newRequestRecord();
    expect((await a.refresh('t1', record, presentedAt + 11_000)).kind).toBe('rejected');
    expect(record.refreshTokenReused).toBe('presented');
    expect(upstream.last(REFRESH).body).toBe('{"refresh_token":"t1"}');
    expect(upstream.calls).toHaveLength(2);
  });
}

describe('coordination over a shared memory', () => coordinationOver(inMemory));
describeWith([REDIS_SERVER], 'coordination over Redis', () => coordinationOver(inRedis));

describe('an instance that crashes while it refreshes', () => {
  it('delays another by the 3 s of its lease, which it had prolonged', async () => {
    const [clock, clockThatStops] = [new ManualClock(), new ManualClock()];
    const store = new MemoryReplayStore(newLedger(), () => clock.now());
    await using upstream = new SharedUpstream();
    upstream.on(REFRESH, silence);
    void refreshCoordinatorOver(store, upstream, {}, clockThatStops).refresh('t1', newRequestRecord(), 0);
    await upstream.arrived(REFRESH);
    await clock.advance(1000);
    await clockThatStops.advance(1000);
    const crashedAt = clock.now();
    const lost = await store.get(recordKey('t1'));
    await clock.advance(500);
    const other = refreshCoordinatorOver(store, upstream, {}, clock);
    void other.refresh('t1', newRequestRecord(), clock.now());
    const hasLease = async () => {
      await clock.advance(40);
      const lease = await store.get(recordKey('t1'));
      return lease?.kind === 'leased' && lease.detail !== lost?.detail;
    };
    await eventually(hasLease, 'the other to refresh');
    expect(clock.now() - crashedAt).toBeWithin(3000, 3100);
  });
});

describe('a presented token', () => {
  it('is noted once, and again when very many others have come after it', async () => {
    let swaps = 0;
    class CountingStore extends MemoryReplayStore {
      override async swap(): Promise<Swapped> {
        swaps++;
        return { isWritten: true };
      }
    }
    await using upstream = new SharedUpstream();
    const { presented } = refreshCoordinatorOver(new CountingStore(newLedger()), upstream);
    for (let times = 0; times < 3; times++) presented.note('t1');
    expect(swaps).toBe(1);
    for (let other = 0; other < 50_000; other++) presented.note(`other-${other}`);
    presented.note('t1');
    expect(swaps).toBe(50_002);
  });
});

describe('a replay', () => {
  it('is not shared with a request of another time, whose replay window may be over or still open', async () => {
    await using upstream = new SharedUpstream();
    const responses = [reply(200, PAIR), reply(401)];
    upstream.on(REFRESH, () => responses.shift()?.() ?? reply(500)());
    let now = Date.now();
    const clock = { ...systemClock, now: () => now };
    const coordinator = refreshCoordinatorOver(
      new MemoryReplayStore(newLedger(), () => now),
      upstream,
      {},
      clock,
    );
    const arriveAt = (at: number) => coordinator.refresh('t1', newRequestRecord(), at);
    await arriveAt(now);
    const inWindow = now + 1000;
    now += 61_000;
    const late = arriveAt(now);
    await new Promise((resolve) => setImmediate(resolve));
    expect((await arriveAt(inWindow)).kind).toBe('renewed');
    expect((await late).kind).toBe('rejected');
    expect(upstream.calls).toEqual([REFRESH, REFRESH]);
  });
});

describe('a chain that is longer than any call falls behind', () => {
  /** Counts what is read. */
  class CountingStore extends MemoryReplayStore {
    reads = 0;

    override async get(key: string) {
      this.reads++;
      return super.get(key);
    }
  }

  async function start() {
    const upstream = new SharedUpstream();
    const store = new CountingStore(newLedger());
    for (let index = 0; index < 5000; index++) {
      const next = { accessToken: 'a', refreshToken: `t${index + 1}`, expiresInSeconds: 900 };
      const record = await recordOf({ kind: 'renewed', pair: next }, `t${index}`);
      await store.swap(recordKey(`t${index}`), undefined, record, 300_000);
    }
    const coordinator = refreshCoordinatorOver(store, upstream);
    return { upstream, store, coordinator, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() };
  }

  it('is followed for 32 tokens: the request of before keeps its cookies, and nothing is sent', async () => {
    await using world = await start();
    const { store, coordinator, upstream } = world;
    const arrivedAt = Date.now() - 60_000;
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, () => coordinator.refresh('t0', newRequestRecord(), arrivedAt)),
    );
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['unreachable']));
    // At each token a request reads its record, and the record and the mark of its successor.
    expect(store.reads).toBeLessThanOrEqual(100 * 32 * 3);
    expect(upstream.calls).toEqual([]);
  });

  it('sets no cookies with a response of before, and is followed that far by a sign-out', async () => {
    await using world = await start();
    const { store, coordinator } = world;
    expect(
      await coordinator.newest({ accessToken: 'a', refreshToken: 't0', expiresInSeconds: 1 }),
    ).toBeUndefined();
    expect((await coordinator.end('t0')).newest?.refreshToken).toBe('t32');
    expect((await store.get(recordKey('t32')))?.kind).toBe('ended');
    expect((await store.get(recordKey('t33')))?.kind).toBe('renewed');
  });
});

describe('a refresh whose record is written', () => {
  it('is not shared any more, because a sign-out at another instance may have followed it', async () => {
    const reply = Promise.withResolvers<void>();
    const written = Promise.withResolvers<void>();
    class SlowStore extends MemoryReplayStore {
      override async swap(...change: Parameters<ReplayStore['swap']>): Promise<Swapped> {
        const swapped = await super.swap(...change);
        if (change[2]?.kind !== 'renewed') return swapped;
        written.resolve();
        await reply.promise;
        return swapped;
      }
    }
    await using upstream = new SharedUpstream();
    upstream.on(REFRESH, () => Response.json(PAIR));
    const store = new SlowStore(newLedger());
    const [here, elsewhere] = [
      refreshCoordinatorOver(store, upstream),
      refreshCoordinatorOver(store, upstream),
    ];
    const first = here.refresh('t1', newRequestRecord(), Date.now());
    await written.promise;
    await elsewhere.end('t1');
    const late = here.refresh('t1', newRequestRecord(), Date.now());
    reply.resolve();
    expect((await first).kind).toBe('renewed');
    expect((await late).kind).toBe('ended');
    expect(upstream.calls).toEqual([REFRESH]);
  });
});

/** Sign-outs with tokens that never existed: anybody can send them. */
async function flood(coordinator: RefreshCoordinator, count: number): Promise<void> {
  for (let done = 0; done < count; done += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, index) => coordinator.end(`made-up-${done + index}`)));
  }
}

describe('a flood of made-up sign-outs', () => {
  function start() {
    const upstream = new SharedUpstream();
    upstream.on(REFRESH, reply(200, PAIR)).on(LOGOUT, reply(204));
    const coordinator = refreshCoordinatorOver(new MemoryReplayStore(newLedger()), upstream);
    const outcome = async (token: string) =>
      (await coordinator.refresh(token, newRequestRecord(), Date.now())).kind;
    return { upstream, coordinator, outcome, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() };
  }

  it.each(['t1', 't2'])('does not bring back a session that was signed out with %s', async (token) => {
    await using world = start();
    await world.outcome('t1');
    await world.coordinator.end(token);
    await flood(world.coordinator, 60_000);
    for (const late of ['t1', 't2']) expect(await world.outcome(late)).toBe('ended');
    expect(world.upstream.calls).toEqual([REFRESH]);
  });

  it('does not let a refresh bring back a session that was signed out meanwhile', async () => {
    await using world = start();
    const { upstream, coordinator, outcome } = world;
    const response = Promise.withResolvers<Response>();
    upstream.on(REFRESH, () => response.promise);
    const refreshing = outcome('t1');
    await upstream.arrived(REFRESH);
    await coordinator.end('t1');
    await flood(coordinator, 60_000);
    response.resolve(Response.json(PAIR));
    expect(await refreshing).toBe('ended');
    expect(upstream.last(LOGOUT).body).toBe('{"refresh_token":"t2"}');
    await flood(coordinator, 60_000);
    expect(await outcome('t1')).toBe('ended');
    expect(upstream.calls).toEqual([REFRESH, LOGOUT]);
  });
});

describeWith([REDIS_SERVER], 'two instances whose clocks differ', () => {
  it.each([12_000, -12_000, 45_000, -45_000])(
    'by %i ms give a late request the newest pair, and no other',
    async (aheadMs) => {
      await using redis = await startRedis();
      await using upstream = new SharedUpstream();
      upstream.on(REFRESH, reply(200, PAIR));
      const clock = { ...PATIENT, now: () => Date.now() + aheadMs };
      const ahead = refreshCoordinatorOver(redisStoreAt(redis.url, {}, clock), upstream, {}, clock);
      const here = refreshCoordinatorOver(redisStoreAt(redis.url, {}, PATIENT), upstream, {}, PATIENT);
      for (const [one, other, now] of [
        [ahead, here, Date.now],
        [here, ahead, clock.now],
      ] as const) {
        const token = crypto.randomUUID();
        expect((await one.refresh(token, newRequestRecord(), clock.now())).kind).toBe('renewed');
        one.presented.note('t2');
        const record = newRequestRecord();
        expect((await other.refresh(token, record, now() - 5000)).kind).toBe('renewed');
        expect(record.refresh).toBe('replayed');
      }
      expect(upstream.calls).toEqual([REFRESH, REFRESH]);
    },
  );
});

describeWith([REDIS_SERVER], 'a flood of made-up sign-outs with Redis', () => {
  it('takes no room there, and brings no session back: not what has worked, nor what is refreshed elsewhere', async () => {
    await using redis = await startRedis();
    await using upstream = new SharedUpstream();
    upstream.on(REFRESH, reply(200, PAIR)).on(LOGOUT, reply(204));
    const start = () => refreshCoordinatorOver(redisStoreAt(redis.url, {}, PATIENT), upstream);
    const [here, elsewhere] = [start(), start()];
    using admin = new RedisAdmin(redis.url);
    const kind = async (at: RefreshCoordinator, token: string) =>
      (await at.refresh(token, newRequestRecord(), Date.now())).kind;
    expect(await kind(elsewhere, 't1')).toBe('renewed');
    const response = Promise.withResolvers<Response>();
    upstream.on(REFRESH, () => response.promise);
    const refreshing = kind(elsewhere, 'leased');
    await upstream.arrived(REFRESH, 2);

    await flood(here, 2000);
    await here.end('t2');
    await here.end('leased');
    // The pair, the mark of its token, and two sign-outs.
    expect(await admin.kept()).toHaveLength(4);
    for (const token of ['t2', 'leased']) expect(await admin.record(token)).toBe('ended:0');
    for (const token of ['t1', 't2']) expect(await kind(elsewhere, token)).toBe('ended');
    response.resolve(Response.json({ access_token: 'a2', refresh_token: 'leased-2' }));
    expect(await refreshing).toBe('ended');
    expect(upstream.last(LOGOUT).body).toBe('{"refresh_token":"leased-2"}');
    expect(await kind(elsewhere, 'leased')).toBe('ended');
  });
});
