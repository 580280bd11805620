import { describe, expect, it } from 'bun:test';
import { Budget } from '../../src/gateway/http/admission/budget.ts';
import type { RequestRecord } from '../../src/gateway/record/request-record.ts';
import type { RefreshCoordinator } from '../../src/gateway/refresh/coordinator.ts';
import { FACT_BYTES, MemoryReplayStore } from '../../src/gateway/refresh/memory-store.ts';
import { recordKey, recordOf } from '../../src/gateway/refresh/record.ts';
import type { Kept, ReplayStore, Swapped } from '../../src/gateway/refresh/store.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import type { RefreshVerdict } from '../../src/gateway/upstream/upstream-api.ts';
import { eventually } from '../support/eventually.ts';
import {
  LEASE,
  ManualClock,
  newLedger,
  newRequestRecord,
  RENEWAL,
  renewed,
  StubUpstream,
} from '../support/refresh-coordinator.ts';

const REFUSED: RefreshVerdict = { kind: 'rejected' };
const AWAY: RefreshVerdict = { kind: 'unreachable', cause: new Error('away') };

/** Two instances over one store. */
function start(environment: Environment = {}, ledger = newLedger()) {
  const clock = new ManualClock();
  const store = new MemoryReplayStore(ledger, clock.now);
  const upstream = new StubUpstream();
  const instance = () => upstream.coordinator(store, clock, environment);
  const [a, b] = [instance(), instance()];
  /** Asks for a refresh, by default now. */
  const refresh = async (at: RefreshCoordinator, token = 't1', arrivedAt = clock.now()) => {
    const record = newRequestRecord();
    const outcome = await at.refresh(token, record, arrivedAt);
    return { ...outcome, record };
  };
  const kind = async (at: RefreshCoordinator, token?: string, arrivedAt?: number) =>
    (await refresh(at, token, arrivedAt)).kind;
  /** Lets time pass until all have their outcome. */
  const outcomesOf = async <Outcome>(requests: Promise<Outcome>[]) => {
    let hasSettled = false;
    const outcomes = Promise.all(requests).finally(() => {
      hasSettled = true;
    });
    await eventually(() => clock.advance(40).then(() => hasSettled), 'every outcome');
    return outcomes;
  };
  const both = () => outcomesOf([refresh(a), refresh(b)]);
  return { clock, store, upstream, a, b, refresh, kind, outcomesOf, both };
}

describe('two instances that need the same refresh', () => {
  it.each<[RefreshVerdict, records: RequestRecord['refresh'][]]>([
    [renewed(2), ['renewed', 'shared']],
    [REFUSED, ['rejected', 'rejected']],
    [AWAY, ['unreachable', 'unreachable']],
  ])('make one call, whatever its outcome, and leave no timer: %j', async (verdict, records) => {
    const { upstream, clock, both } = start();
    upstream.verdict = () => verdict;
    const outcomes = await both();
    expect(outcomes.map(({ kind }) => kind)).toEqual([verdict.kind, verdict.kind]);
    expect(outcomes.map(({ record }) => record.refresh)).toEqual(records);
    expect(upstream.refreshed).toEqual(['t1']);
    expect(clock.running).toBe(0);
  });

  it('give up when a lease stays longer than any refresh, without a call', async () => {
    const { store, upstream, clock, both } = start({ TIMEOUT_SIGN_IN_MS: '1500' });
    await store.swap(recordKey('t1'), undefined, LEASE, 600_000);
    const startedAt = clock.now();
    expect((await both()).map(({ kind }) => kind)).toEqual(['unreachable', 'unreachable']);
    expect(clock.now() - startedAt).toBeWithin(4500, 4700);
    expect(upstream.refreshed).toEqual([]);
  });

  it('wait for 3 s when one crashes while it refreshes: for as long as it had prolonged its lease', async () => {
    const { clock, store, upstream, b, kind } = start();
    const clockThatStops = new ManualClock();
    upstream.verdict = () => new Promise(() => {});
    void upstream.coordinator(store, clockThatStops).refresh('t1', newRequestRecord(), 0);
    await eventually(() => upstream.refreshed.length === 1, 'the first refresh');
    for (const each of [clock, clockThatStops]) await each.advance(1000);
    const crashedAt = clock.now();
    void kind(b);
    await eventually(
      () => clock.advance(40).then(() => upstream.refreshed.length === 2),
      'the other refresh',
    );
    expect(clock.now() - crashedAt).toBeWithin(3000, 3100);
  });

  it.each<[why: string, lease: typeof LEASE | undefined]>([
    ['has expired', undefined],
    ['is that of another instance', { ...LEASE, detail: 'of another' }],
  ])('keep the pair on record although its lease %s by then', async (_, lease) => {
    const { store, upstream, a, b, refresh } = start();
    const response = Promise.withResolvers<RefreshVerdict>();
    upstream.verdict = () => response.promise;
    const refreshing = refresh(a);
    await eventually(() => upstream.refreshed.length === 1, 'the refresh');
    const key = recordKey('t1');
    await store.swap(key, await store.get(key), lease, 3000);
    response.resolve(renewed(2));
    expect((await refreshing).kind).toBe('renewed');
    expect((await refresh(b)).record.refresh).toBe('replayed');
    expect(upstream.refreshed).toEqual(['t1']);
  });

  it('take a record that does not open for no verdict', async () => {
    const { store, upstream, both } = start();
    await store.swap(recordKey('t1'), undefined, RENEWAL, 60_000);
    expect((await both()).map(({ kind }) => kind)).toEqual(['unreachable', 'unreachable']);
    expect(upstream.refreshed).toEqual([]);
  });
});

describe('a refresh token', () => {
  it('costs no further refresh for 30 s after a refusal', async () => {
    const { clock, upstream, a, kind } = start();
    upstream.verdict = () => REFUSED;
    for (const [laterMs, sent] of [
      [0, 1],
      [29_999, 1],
      [1, 2],
    ] as const) {
      await clock.advance(laterMs);
      expect(await kind(a)).toBe('rejected');
      expect(upstream.refreshed).toHaveLength(sent);
    }
  });

  it('that the upstream does not rotate is refreshed each time', async () => {
    const { upstream, a, kind } = start();
    upstream.verdict = () => renewed(1);
    for (const _ of [1, 2]) expect(await kind(a)).toBe('renewed');
    expect(upstream.refreshed).toEqual(['t1', 't1']);
  });

  it('yields its pair with the rest of its life, and its successor is refreshed once that is over', async () => {
    const { clock, upstream, a, b, refresh, outcomesOf } = start({ REFRESH_REPLAY_SECONDS: '600' });
    upstream.verdict = () => renewed(upstream.refreshed.length + 1, 100);
    await refresh(a);
    await clock.advance(40_500);
    expect(await refresh(b)).toMatchObject({ pair: { refreshToken: 't2', expiresInSeconds: 59 } });
    await clock.advance(59_000);
    expect(await refresh(b)).toMatchObject({ pair: { refreshToken: 't2', expiresInSeconds: 1 } });
    await clock.advance(1000);
    const requests = [a, b, a, b].flatMap((at) => [refresh(at), refresh(at, 't2')]);
    const outcomes = await outcomesOf(requests);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ pair: { refreshToken: 't3' } });
    expect(upstream.refreshed).toEqual(['t1', 't2']);
  });

  it('is judged by the time of each request, also when two of different times need it at once', async () => {
    const { clock, upstream, a, refresh } = start();
    await refresh(a);
    const inWindow = clock.now() + 1000;
    await clock.advance(61_000);
    upstream.verdict = () => REFUSED;
    const [late, early] = await Promise.all([refresh(a), refresh(a, 't1', inWindow)]);
    expect([late.kind, early.kind]).toEqual(['rejected', 'renewed']);
    expect(upstream.refreshed).toEqual(['t1', 't1']);
  });

  it('that was sent as a reuse may get a pair, whose sign-out counts everywhere and stays', async () => {
    const { clock, upstream, a, b, refresh, kind } = start();
    await refresh(a);
    await clock.advance(61_000);
    upstream.verdict = () => renewed(9);
    const reuse = await refresh(a);
    expect(reuse.kind).toBe('renewed');
    expect(reuse.record).toMatchObject({ refresh: 'renewed', refreshTokenReused: 'late' });
    await b.end('t9');
    // Longer than that of an unknown token is remembered.
    await clock.advance(31_000);
    expect(await kind(a, 't9')).toBe('ended');
    expect(upstream.refreshed).toHaveLength(2);
  });

  it('that was sent as a reuse gets nothing when its session is signed out meanwhile', async () => {
    const { clock, upstream, a, b, refresh, kind } = start();
    await refresh(a);
    await clock.advance(61_000);
    const response = Promise.withResolvers<RefreshVerdict>();
    upstream.verdict = () => response.promise;
    const reusing = kind(a);
    await eventually(() => upstream.refreshed.length === 2, 'the reuse');
    await b.end('t2');
    response.resolve(renewed(9));
    expect(await reusing).toBe('ended');
    expect(upstream.signedOut).toEqual(['t9']);
  });

  it('is noted once when it is presented, and again when very many others have come after it', async () => {
    let swaps = 0;
    class CountingStore extends MemoryReplayStore {
      override async swap(): Promise<Swapped> {
        swaps++;
        return { isWritten: true };
      }
    }
    const { presented } = new StubUpstream().coordinator(new CountingStore(newLedger()), new ManualClock());
    for (let times = 0; times < 3; times++) presented.note('t1');
    expect(swaps).toBe(1);
    for (let other = 0; other < 50_000; other++) presented.note(`other-${other}`);
    presented.note('t1');
    expect(swaps).toBe(50_002);
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
    const [upstream, clock, record] = [new StubUpstream(), new ManualClock(), newRequestRecord()];
    const store = new SlowStore(newLedger(), clock.now);
    const here = upstream.coordinator(store, clock);
    const first = here.refresh('t1', record, clock.now());
    await written.promise;
    await upstream.coordinator(store, clock).end('t1');
    const late = here.refresh('t1', record, clock.now());
    reply.resolve();
    expect((await first).kind).toBe('renewed');
    expect((await late).kind).toBe('ended');
    expect(upstream.refreshed).toEqual(['t1']);
  });
});

describe('a chain that is longer than any call falls behind', () => {
  class CountingStore extends MemoryReplayStore {
    reads = 0;

    override async get(key: string): Promise<Kept | undefined> {
      this.reads++;
      return super.get(key);
    }
  }

  async function startChain() {
    const [clock, upstream] = [new ManualClock(), new StubUpstream()];
    const store = new CountingStore(newLedger(), clock.now);
    for (let index = 0; index < 50; index++) {
      const record = await recordOf(renewed(index + 1), `t${index}`);
      await store.swap(recordKey(`t${index}`), undefined, record, 300_000);
    }
    return { upstream, store, clock, coordinator: upstream.coordinator(store, clock) };
  }

  it('is followed for 32 tokens: the request of before keeps its cookies, and nothing is sent', async () => {
    const { store, coordinator, upstream, clock } = await startChain();
    const outcome = await coordinator.refresh('t0', newRequestRecord(), clock.now() - 60_000);
    expect(outcome.kind).toBe('unreachable');
    // At each token a request reads its record, and the record and the mark of its successor.
    expect(store.reads).toBe(32 * 3);
    expect(upstream.refreshed).toEqual([]);
  });

  it('sets no cookies with a response of before, and is followed that far by a sign-out', async () => {
    const { store, coordinator } = await startChain();
    const pair = { accessToken: 'a0', refreshToken: 't0', expiresInSeconds: 1 };
    expect(await coordinator.newest(pair)).toBeUndefined();
    expect((await coordinator.end('t0')).newest?.refreshToken).toBe('t32');
    expect((await store.get(recordKey('t32')))?.kind).toBe('ended');
    expect((await store.get(recordKey('t33')))?.kind).toBe('renewed');
  });
});

describe('a flood of made-up sign-outs', () => {
  /** Room for 50 facts that strangers can cause, and 350 others. */
  const small = () => new Budget(12 * 400 * FACT_BYTES);
  const flood = async (coordinator: RefreshCoordinator) => {
    for (let index = 0; index < 500; index++) await coordinator.end(`made-up-${index}`);
  };

  it.each(['t1', 't2'])('does not bring back a session that was signed out with %s', async (token) => {
    const { upstream, a, kind } = start({}, small());
    await kind(a);
    await a.end(token);
    await flood(a);
    for (const late of ['t1', 't2']) expect(await kind(a, late)).toBe('ended');
    expect(upstream.refreshed).toEqual(['t1']);
  });

  it('does not let a refresh bring back a session that was signed out meanwhile', async () => {
    const { upstream, a, kind } = start({}, small());
    const response = Promise.withResolvers<RefreshVerdict>();
    upstream.verdict = () => response.promise;
    const refreshing = kind(a);
    await eventually(() => upstream.refreshed.length === 1, 'the refresh');
    await a.end('t1');
    await flood(a);
    response.resolve(renewed(2));
    expect(await refreshing).toBe('ended');
    expect(upstream.signedOut).toEqual(['t2']);
    await flood(a);
    expect(await kind(a)).toBe('ended');
    expect(upstream.refreshed).toEqual(['t1']);
  });
});
