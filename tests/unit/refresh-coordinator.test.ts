import { describe, expect, it } from 'bun:test';
import { Budget } from '../../src/gateway/admission/budget.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import type { RefreshCoordinator } from '../../src/gateway/refresh/coordinator.ts';
import { factKey, factOf } from '../../src/gateway/refresh/facts.ts';
import { FACT_BYTES, MemoryReplayStore } from '../../src/gateway/refresh/memory-store.ts';
import type { Fact, Kept, ReplayStore, Swapped } from '../../src/gateway/refresh/store.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import type { RefreshVerdict } from '../../src/gateway/upstream/upstream-api.ts';
import { ProcessClock, VirtualTime } from '../faults/refresh-model/virtual-time.ts';
import * as support from '../support/refresh-coordinator.ts';

const { ENDED, LEASE, newLedger, REJECTED, RENEWAL, renewed, StubUpstream, UNREACHABLE } = support;
const REFUSED: RefreshVerdict = { kind: 'rejected' };
const NO_VERDICT: RefreshVerdict = { kind: 'unreachable', cause: 'away' };
const VERDICTS = { 'a pair': renewed(2), 'a refusal': REFUSED, 'no verdict': NO_VERDICT };
/** What can be in place of a lease that was lost. */
const FACTS = {
  nothing: undefined,
  'no verdict': UNREACHABLE,
  'another lease': { ...LEASE, detail: 'of another' },
  'a refusal': REJECTED,
  'another pair': await factOf(renewed(9), 't1'),
  'a sign-out': ENDED,
  'an end by a sign-in': { ...ENDED, detail: '10000' },
};

type Step = 'after leased' | 'before renewed' | 'after renewed' | 'before undefined';

/** A store that counts, and that a test can stop before or after a write. */
class WatchedStore extends MemoryReplayStore {
  reads = 0;
  readonly written: (Fact['kind'] | undefined)[] = [];
  readonly #stops = new Map<string, () => Promise<void>>();

  /** Stops once, at the next such write. */
  stopAt(step: Step) {
    const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    this.#stops.set(step, () => {
      this.#stops.delete(step);
      reached.resolve();
      return released.promise;
    });
    return { reached: reached.promise, goOn: released.resolve };
  }

  override get(key: string): Promise<Kept | undefined> {
    this.reads++;
    return super.get(key);
  }

  override async swap(...change: Parameters<ReplayStore['swap']>): Promise<Swapped> {
    const kind = change[2]?.kind;
    this.written.push(kind);
    await this.#stops.get(`before ${kind}`)?.();
    const swapped = await super.swap(...change);
    await this.#stops.get(`after ${kind}`)?.();
    return swapped;
  }
}

/** Two instances over one store. What must hold in every order of small plans: faults/refresh-model. */
function start(environment: Environment = {}, ledger = newLedger()) {
  const time = new VirtualTime(() => 0);
  const clock = new ProcessClock(time, 0);
  const store = new WatchedStore(ledger, clock.now);
  const upstream = new StubUpstream();
  const instance = () => upstream.coordinator(store, clock, environment);
  const [a, b] = [instance(), instance()];
  /** Asks for a refresh, by default now. */
  const ask = async (at: RefreshCoordinator, token = 't1', arrivedAt = clock.now()) => {
    const record = new RequestRecord(new Request('http://gateway.test'));
    return { ...(await at.refresh(token, record, arrivedAt)), record };
  };
  const refresh = (...request: Parameters<typeof ask>) => time.wait(ask(...request));
  const kind = async (...request: Parameters<typeof refresh>) => (await refresh(...request)).kind;
  /** A refresh whose response is held back until the test gives the verdict. */
  const hold = async (at: RefreshCoordinator) => {
    const { promise, resolve } = Promise.withResolvers<RefreshVerdict>();
    upstream.verdict = () => promise;
    const sent = upstream.refreshed.length;
    const outcome = ask(at);
    await time.run(() => upstream.refreshed.length > sent);
    return { resolve, outcome };
  };
  return { time, clock, store, upstream, a, b, ask, refresh, kind, hold };
}

describe('two instances that need the same refresh', () => {
  it.each<[RefreshVerdict, records: string[]]>([
    [renewed(2), ['renewed', 'shared']],
    [REFUSED, ['rejected', 'rejected']],
    [NO_VERDICT, ['unreachable', 'unreachable']],
  ])('make one call, whatever its verdict: %j', async (verdict, records) => {
    const { time, upstream, a, b, ask } = start();
    upstream.verdict = () => verdict;
    const outcomes = await time.wait(Promise.all([ask(a), ask(b)]));
    expect(outcomes.map(({ kind }) => kind)).toEqual([verdict.kind, verdict.kind]);
    expect(outcomes.map(({ record }) => String(record.refresh))).toEqual(records);
    expect(upstream.refreshed).toEqual(['t1']);
  });

  it.each<[what: string, fact: Fact, afterMs: number]>([
    ['a lease that stays longer than any refresh', LEASE, 4520],
    ['a pair that does not open', RENEWAL, 0],
  ])('make no call, and give up, because of %s', async (_, fact, afterMs) => {
    const { store, upstream, time, a, b, ask } = start({ TIMEOUT_SIGN_IN_MS: '1500' });
    await store.swap(factKey('t1'), undefined, fact, 600_000);
    const startedAt = time.now;
    const outcomes = await time.wait(Promise.all([ask(a), ask(b)]));
    expect(outcomes.map(({ kind }) => kind)).toEqual(['unreachable', 'unreachable']);
    expect([time.now - startedAt, upstream.refreshed]).toEqual([afterMs, []]);
  });

  // The table in src/gateway/refresh/README.md. How a refresh waits for another's lease: below.
  it.each<[keyof typeof VERDICTS, keyof typeof FACTS, counts: string]>([
    ['a pair', 'nothing', 't2'],
    ['a pair', 'no verdict', 't2'],
    ['a pair', 'another lease', 't2'],
    ['a pair', 'a refusal', 't2'],
    ['a pair', 'another pair', 't9'],
    ['a pair', 'a sign-out', 'ended'],
    ['a pair', 'an end by a sign-in', 'ended'],
    ['a refusal', 'nothing', 'rejected, clears'],
    ['a refusal', 'no verdict', 'rejected, clears'],
    ['a refusal', 'a refusal', 'rejected'],
    ['a refusal', 'another pair', 't9'],
    ['a refusal', 'a sign-out', 'ended'],
    ['no verdict', 'nothing', 'unreachable'],
    ['no verdict', 'no verdict', 'unreachable'],
    ['no verdict', 'a refusal', 'rejected'],
    ['no verdict', 'another pair', 't9'],
    ['no verdict', 'a sign-out', 'ended'],
  ])('get what counts when %s finds %s in place of its lease: %s', async (verdict, found, counts) => {
    const { time, store, upstream, a, b, ask, hold } = start();
    const { resolve, outcome } = await hold(a);
    await time.pass(1);
    const key = factKey('t1');
    await store.swap(key, await store.get(key), FACTS[found], 600_000);
    resolve(VERDICTS[verdict]);
    const own = await time.wait(outcome);
    const clears = own.kind === 'rejected' && (own.clearsCookies ?? true) ? ', clears' : '';
    expect(own.kind === 'renewed' ? own.pair.refreshToken : own.kind + clears).toBe(counts);
    expect(upstream.signedOut).toEqual(verdict === 'a pair' && found === 'a sign-out' ? ['t2'] : []);
    // It is also kept.
    if (counts !== 'unreachable') expect((await time.wait(ask(b))).kind).toBe(own.kind);
    expect(upstream.refreshed).toEqual(['t1']);
  });

  it.each(['a refusal', 'no verdict'] as const)(
    'get the pair of the one that has taken the lease of the other, which got %s',
    async (verdict) => {
      const { time, store, a, b, hold } = start();
      const first = await hold(a);
      const key = factKey('t1');
      await store.swap(key, await store.get(key), undefined);
      const second = await hold(b);
      first.resolve(VERDICTS[verdict]);
      await time.pass(500);
      second.resolve(renewed(2));
      for (const { outcome } of [first, second])
        expect(await time.wait(outcome)).toMatchObject({ kind: 'renewed', pair: { refreshToken: 't2' } });
    },
  );

  it('send the token once, although the first stands still after it has got the lease', async () => {
    const { time, store, upstream, a, b, ask } = start();
    const leased = store.stopAt('after leased');
    const first = ask(a);
    await leased.reached;
    await time.pass(3600);
    expect((await time.wait(ask(b))).kind).toBe('renewed');
    leased.goOn();
    expect((await time.wait(first)).kind).toBe('renewed');
    expect(upstream.refreshed).toEqual(['t1']);
  });

  it('send it once, although the lease is over when the verdict comes and is not written yet', async () => {
    const { time, store, upstream, a, ask, hold } = start();
    const { resolve, outcome } = await hold(a);
    const key = factKey('t1');
    await store.swap(key, await store.get(key), undefined);
    const renewal = store.stopAt('before renewed');
    resolve(renewed(2));
    await renewal.reached;
    const late = ask(a);
    await time.pass(10);
    renewal.goOn();
    for (const each of [outcome, late]) expect((await time.wait(each)).kind).toBe('renewed');
    expect(upstream.refreshed).toEqual(['t1']);
  });

  it('share what begins after a fact that had been read before them', async () => {
    const { time, store, upstream, a, ask } = start();
    await store.swap(factKey('t1'), undefined, LEASE, 600_000);
    const outcomes = Promise.all([ask(a), ask(a), ask(a)]);
    await time.pass(100);
    await store.swap(factKey('t1'), LEASE, UNREACHABLE, 500);
    const records = (await time.wait(outcomes)).map(({ record }) => String(record.refresh));
    expect([records, upstream.refreshed]).toEqual([['unreachable', 'renewed', 'shared'], ['t1']]);
  });

  it('do not share it any more once its fact is written, because a sign-out may have followed it', async () => {
    const { time, store, upstream, a, b, ask } = start();
    const renewal = store.stopAt('after renewed');
    const first = ask(a);
    await renewal.reached;
    await b.end('t1');
    const late = ask(a);
    renewal.goOn();
    const outcomes = await time.wait(Promise.all([first, late]));
    expect(outcomes.map(({ kind }) => kind)).toEqual(['renewed', 'ended']);
    expect(upstream.refreshed).toEqual(['t1']);
  });
});

describe('a refresh token', () => {
  it('costs no further refresh after a refusal, for longer than any request is in flight', async () => {
    const { time, upstream, a, kind } = start();
    upstream.verdict = () => REFUSED;
    const sent: number[] = [];
    for (const laterMs of [0, 362_999, 1]) {
      await time.pass(laterMs);
      expect(await kind(a)).toBe('rejected');
      sent.push(upstream.refreshed.length);
    }
    expect(sent).toEqual([1, 1, 2]);
  });

  it('yields nothing with a replay of 0 s, also to a request that its successor has overtaken', async () => {
    const { time, clock, upstream, a, b, kind } = start({ REFRESH_REPLAY_SECONDS: '0' });
    await kind(a);
    a.presented.expect('t2');
    await time.pass(1);
    const arrivedAt = clock.now();
    await time.pass(1);
    a.presented.note('t2');
    await kind(b, 't1', arrivedAt);
    expect(upstream.refreshed).toEqual(['t1', 't1']);
  });

  it('that was sent as a reuse may get a pair, whose sign-out counts everywhere', async () => {
    const { time, store, upstream, a, b, refresh, kind } = start();
    await refresh(a);
    await time.pass(61_000);
    upstream.verdict = () => renewed(9);
    const record = { refresh: 'renewed', refreshTokenReused: 'late' };
    expect(await refresh(a)).toMatchObject({ kind: 'renewed', record });
    await b.end('t9');
    expect(store.written).toContain('ended');
    expect(await kind(a, 't9')).toBe('ended');
    expect(upstream.refreshed).toHaveLength(2);
  });

  it('that was sent as a reuse is told as presented when a client had only the last pair of its chain', async () => {
    const { time, upstream, a, refresh } = start();
    upstream.verdict = () => renewed(upstream.refreshed.length + 1, 1);
    await refresh(a);
    await time.pass(1000);
    // The access token of the second pair has expired, so nobody gets that pair.
    expect(await refresh(a)).toMatchObject({ pair: { refreshToken: 't3' } });
    a.presented.note('t3');
    await time.pass(61_000);
    expect(await refresh(a)).toMatchObject({ record: { refreshTokenReused: 'presented' } });
  });

  it.each([
    ['clears the cookies', false],
    ['keeps the cookies when a client presents its successor meanwhile', true],
  ])('that was sent as a reuse and is refused %s', async (_, isPresented) => {
    const { time, a, kind, hold } = start();
    await kind(a);
    await time.pass(61_000);
    const { resolve, outcome } = await hold(a);
    if (isPresented) a.presented.note('t2');
    resolve({ kind: 'rejected' });
    expect(await time.wait(outcome)).toMatchObject({ kind: 'rejected', clearsCookies: !isPresented });
  });

  it('that is sent as a reuse gets nothing when its session ends meanwhile, and its pair is signed out', async () => {
    const { time, upstream, a, b, kind, hold } = start();
    await kind(a);
    await time.pass(61_000);
    const { resolve, outcome } = await hold(a);
    await b.end('t2');
    resolve(renewed(9));
    expect([(await time.wait(outcome)).kind, upstream.signedOut]).toEqual(['ended', ['t9']]);
  });

  it('that is spent is not sent as a reuse when its session has ended', async () => {
    const { time, upstream, a, b, kind } = start();
    await kind(a);
    await b.end('t2');
    await time.pass(61_000);
    expect([await kind(a), upstream.refreshed]).toEqual(['ended', ['t1']]);
  });

  it('that was signed out keeps the cookies of a sign-in that comes with it afterwards', async () => {
    const { time, clock, store, a, refresh } = start();
    await a.end('t1');
    // Other instances do not hear of that, because strangers could sign out, but they cannot sign in.
    await a.end('replaced', 10_000);
    expect(store.written).toEqual(['ended']);
    await time.pass(20_000);
    const arrivedAt = clock.now();
    expect(await refresh(a)).toMatchObject({ kind: 'ended', clearsCookies: true });
    await time.pass(500);
    expect(await a.end('t1', 10_000)).toMatchObject({ hadEnded: true });
    expect(await refresh(a, 't1', arrivedAt)).toMatchObject({ kind: 'ended', clearsCookies: false });
  });

  it('that was signed out while its lease was over has ended everywhere, because it is spent', async () => {
    const { time, store, upstream, a, kind, hold } = start();
    const { resolve, outcome } = await hold(a);
    const key = factKey('t1');
    await store.swap(key, await store.get(key), undefined);
    await a.end('t1');
    resolve(renewed(2));
    expect((await time.wait(outcome)).kind).toBe('ended');
    expect(store.written).toContain('ended');
    expect([await kind(a), upstream.refreshed]).toEqual(['ended', ['t1']]);
  });

  it('that the upstream issues again is sent once for two requests, each time', async () => {
    const { time, upstream, a, ask } = start();
    upstream.verdict = () => renewed(1);
    for (const sends of [1, 2]) {
      await time.wait(Promise.all([ask(a), ask(a)]));
      expect(upstream.refreshed).toHaveLength(sends);
    }
  });

  it('that the upstream issues again counts, whatever another instance notes of it at that moment', async () => {
    const { time, store, a, b, kind, upstream } = start();
    upstream.verdict = () => ({ kind: 'rejected' });
    await kind(a);
    const { reached, goOn } = store.stopAt('before undefined');
    const forgotten = a.forgetEnd('t1');
    await reached;
    await b.end('t1');
    goOn();
    await time.wait(forgotten);
    upstream.verdict = () => renewed(2);
    expect(await kind(a)).toBe('renewed');
  });

  it('is noted once when it is presented, and again when very many others have come after it', () => {
    const { store, a } = start();
    for (let times = 0; times < 3; times++) a.presented.note('t1');
    expect(store.written).toHaveLength(1);
    for (let other = 0; other < 50_000; other++) a.presented.note(`other-${other}`);
    a.presented.note('t1');
    expect(store.written).toHaveLength(50_002);
  });
});

it('A chain is followed for 32 tokens by a request, a response of before, and a sign-out', async () => {
  const { clock, store, upstream, a, kind } = start();
  for (let index = 0; index < 50; index++) {
    const fact = await factOf(renewed(index + 1), `t${index}`);
    await store.swap(factKey(`t${index}`), undefined, fact, 300_000);
  }
  expect(await kind(a, 't0', clock.now() - 60_000)).toBe('unreachable');
  // At each token a request reads its fact, and the fact and the mark of its successor.
  expect(store.reads).toBe(32 * 3);
  expect(upstream.refreshed).toEqual([]);
  expect(await a.newest({ accessToken: 'a0', refreshToken: 't0', expiresInSeconds: 1 })).toBeUndefined();
  expect((await a.end('t0')).newest?.refreshToken).toBe('t31');
  const kinds = await Promise.all(['t31', 't32'].map((token) => store.get(factKey(token))));
  expect(kinds.map((fact) => fact?.kind)).toEqual(['ended', 'renewed']);
});

it('A flood of made-up sign-outs does not let a refresh bring back a session that was signed out', async () => {
  // With room for 50 facts that strangers can cause, and 350 others.
  const { time, upstream, a, kind, hold } = start({}, new Budget(12 * 400 * FACT_BYTES));
  const flood = async () => {
    for (let index = 0; index < 500; index++) await a.end(`made-up-${index}`);
  };
  const { resolve, outcome } = await hold(a);
  await a.end('t1');
  await flood();
  resolve(renewed(2));
  expect((await time.wait(outcome)).kind).toBe('ended');
  expect(upstream.signedOut).toEqual(['t2']);
  await flood();
  expect(await kind(a)).toBe('ended');
  expect(upstream.refreshed).toEqual(['t1']);
});
