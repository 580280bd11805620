import { describe, expect, it, spyOn } from 'bun:test';
import { Admission } from '../../src/gateway/admission/admission.ts';
import { Ledger } from '../../src/gateway/admission/ledger.ts';
import { FACT_BYTES } from '../../src/gateway/admission/prices.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import { RefreshCoordinator } from '../../src/gateway/refresh/coordinator.ts';
import { factKey, factOf } from '../../src/gateway/refresh/facts.ts';
import { MemoryReplayStore } from '../../src/gateway/refresh/memory-store.ts';
import type { Fact } from '../../src/gateway/refresh/store.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import type { TokenPair } from '../../src/gateway/upstream/token-pair.ts';
import { type RefreshVerdict, UpstreamApi } from '../../src/gateway/upstream/upstream-api.ts';
import { ProcessClock, VirtualTime } from '../faults/refresh-model/virtual-time.ts';
import { ENDED, LEASE, newLedger, REJECTED, RENEWAL, UNREACHABLE } from '../support/facts.ts';
import { testSettings } from '../support/world.ts';

/** The pair with this refresh token, such as `t2`. */
function renewed(generation: number, expiresInSeconds = 900): RefreshVerdict {
  const pair = { accessToken: `a${generation}`, refreshToken: `t${generation}`, expiresInSeconds };
  return { kind: 'renewed', pair };
}
const REFUSED: RefreshVerdict = { kind: 'rejected' };
const NO_VERDICT: RefreshVerdict = { kind: 'unreachable', cause: 'away' };

/** The fact of a renewal by another. */
const TO_T9 = await factOf(renewed(9), 't1');
/** The upstream had issued the same token again. */
const T1_AGAIN = await factOf(renewed(1), 't1');
/** What a request gets. */
const got = (refreshToken: string) => ({ kind: 'renewed', pair: { refreshToken } });
const rejected = (clearsCookies: boolean) => ({ kind: 'rejected', clearsCookies });
const AWAY = { kind: 'unreachable' };
const OVER = { kind: 'ended' };

/** Two instances over one store. What must hold in every order of small plans: faults/refresh-model. */
function start(environment: Environment = {}, ledger = newLedger()) {
  const time = new VirtualTime(() => 0);
  const clock = new ProcessClock(time, 0);
  const store = new MemoryReplayStore(ledger, clock.now);
  /** That of the store itself, for a test that does something before or after a write. */
  const swap = store.swap.bind(store);
  const writes = spyOn(store, 'swap');
  const written = () => writes.mock.calls.map(([, , to]) => to?.kind);
  const settings = testSettings(environment);
  /** The tokens with which the upstream was asked to refresh, and to sign out. */
  const refreshed: string[] = [];
  const signedOut: string[] = [];
  const upstream = Object.assign(new UpstreamApi(settings, new Admission(settings)), {
    refreshed,
    signedOut,
    /** What the next refreshes get. */
    verdict: (): RefreshVerdict | Promise<RefreshVerdict> => renewed(2),
    async refresh(refreshToken: string) {
      refreshed.push(refreshToken);
      return this.verdict();
    },
    async signOut({ refreshToken }: Pick<TokenPair, 'refreshToken'>) {
      signedOut.push(refreshToken);
      return 204;
    },
  });
  const instance = () => new RefreshCoordinator(settings, store, upstream, clock);
  const [a, b] = [instance(), instance()];
  /** Asks for a refresh, by default now. */
  const ask = async (at: RefreshCoordinator, token = 't1', arrivedAt = clock.now(), refused?: string) => {
    const record = new RequestRecord(new Request('http://gateway.test'));
    return { ...(await at.refresh(token, record, arrivedAt, refused)), record };
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
  /** The lease is lost, and this is in its place. */
  const loseLease = async (fact?: Fact) => {
    const key = factKey('t1');
    await store.swap(key, await store.get(key), fact, 600_000);
  };
  return { time, clock, store, upstream, a, b, ask, refresh, kind, hold, loseLease, swap, writes, written };
}

// How one is sent once when an instance stands still: faults/refresh-model.
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

  // The table in src/gateway/refresh/README.md.
  it.each<[what: string, fact: Fact | undefined, pair: object, refusal: object, noVerdict: object]>([
    ['nothing', undefined, got('t2'), rejected(true), AWAY],
    ['that there was no verdict', UNREACHABLE, got('t2'), rejected(true), AWAY],
    ['a refusal', REJECTED, got('t2'), rejected(false), rejected(false)],
    ['another pair', TO_T9, got('t9'), got('t9'), got('t9')],
    ['a pair with the same token', T1_AGAIN, got('t2'), got('t1'), got('t1')],
    ['a sign-out', ENDED, OVER, OVER, OVER],
    ['an end by a sign-in', { ...ENDED, detail: '10000' }, OVER, OVER, OVER],
  ])('get what counts when one finds %s in place of its lease', async (_, fact, pair, refusal, noVerdict) => {
    const cases = [
      [renewed(2), pair],
      [REFUSED, refusal],
      [NO_VERDICT, noVerdict],
    ] as const;
    for (const [verdict, counts] of cases) {
      const { time, upstream, a, b, ask, hold, loseLease } = start();
      const { resolve, outcome } = await hold(a);
      await time.pass(1);
      await loseLease(fact);
      resolve(verdict);
      const own = await time.wait(outcome);
      expect({ clearsCookies: true, ...own }).toMatchObject(counts);
      expect(upstream.signedOut).toEqual(verdict.kind === 'renewed' && fact === ENDED ? ['t2'] : []);
      // It is also kept, unless there was no verdict.
      expect((await time.wait(ask(b))).kind).toBe(own.kind);
      expect(upstream.refreshed).toHaveLength(own.kind === 'unreachable' ? 2 : 1);
    }
  });

  it.each<[what: string, RefreshVerdict, token: string]>([
    ['first', renewed(2), 't2'],
    ['second, when the first was refused', REFUSED, 't3'],
    ['second, when the first got no verdict', NO_VERDICT, 't3'],
  ])('get the pair of the %s, when the second has taken the first lease', async (_, verdict, token) => {
    const { time, a, b, hold, loseLease } = start();
    const first = await hold(a);
    await loseLease();
    const second = await hold(b);
    first.resolve(verdict);
    await time.pass(500);
    second.resolve(renewed(3));
    for (const { outcome } of [first, second])
      expect(await time.wait(outcome)).toMatchObject({ kind: 'renewed', pair: { refreshToken: token } });
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
    const { time, upstream, a, b, ask, swap, writes } = start();
    let late: ReturnType<typeof ask> | undefined;
    writes.mockImplementation(async (...change) => {
      const swapped = await swap(...change);
      if (change[2]?.kind === 'renewed') {
        await b.end('t1');
        late = ask(a);
      }
      return swapped;
    });
    expect((await time.wait(ask(a))).kind).toBe('renewed');
    expect((await late)?.kind).toBe('ended');
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
    const { time, upstream, a, b, refresh, kind, written } = start();
    await refresh(a);
    await time.pass(61_000);
    upstream.verdict = () => renewed(9);
    const record = { refresh: 'renewed', refreshTokenReused: 'late' };
    expect(await refresh(a)).toMatchObject({ kind: 'renewed', record });
    await b.end('t9');
    expect(written()).toContain('ended');
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

  it('that was sent as a reuse and is refused keeps the cookies when its successor is presented meanwhile', async () => {
    const { time, a, kind, hold } = start();
    await kind(a);
    await time.pass(61_000);
    const { resolve, outcome } = await hold(a);
    a.presented.note('t2');
    resolve(REFUSED);
    expect(await time.wait(outcome)).toMatchObject({ kind: 'rejected', clearsCookies: false });
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
    const { time, clock, a, refresh } = start();
    await a.end('t1');
    await time.pass(20_000);
    const arrivedAt = clock.now();
    expect(await refresh(a)).toMatchObject({ kind: 'ended', clearsCookies: true });
    await time.pass(500);
    expect(await a.end('t1', 10_000)).toMatchObject({ hadEnded: true });
    expect(await refresh(a, 't1', arrivedAt)).toMatchObject({ kind: 'ended', clearsCookies: false });
  });

  it('that was signed out while its lease was over has ended everywhere, because it is spent', async () => {
    const { time, upstream, a, kind, hold, loseLease, written } = start();
    const { resolve, outcome } = await hold(a);
    await loseLease();
    await a.end('t1');
    resolve(renewed(2));
    expect((await time.wait(outcome)).kind).toBe('ended');
    expect(written()).toContain('ended');
    expect([await kind(a), upstream.refreshed]).toEqual(['ended', ['t1']]);
  });

  it('that the upstream issues again yields its pair to requests with an older access token', async () => {
    const { time, clock, upstream, a, b, ask, refresh, kind } = start();
    upstream.verdict = () => renewed(1, 60);
    const withToken = (refused: string, at = a) => time.wait(ask(at, 't1', clock.now(), refused));
    await time.wait(Promise.all([ask(a), ask(a)]));
    await time.pass(5000);
    const pair = { accessToken: 'a1', refreshToken: 't1', expiresInSeconds: 55 };
    for (const { record, ...outcome } of [await withToken('a0', b), await refresh(b)])
      expect([outcome, record.refresh]).toEqual([{ kind: 'renewed', pair }, 'replayed']);
    expect(await a.newest({ ...pair, accessToken: 'a0' })).toEqual(pair);
    const sameAgain = { ...pair, expiresInSeconds: 60 };
    expect(await a.newest(sameAgain)).toBe(sameAgain);
    expect(upstream.refreshed).toHaveLength(1);
    // Not when the upstream refuses that one as well, when it is over, or after another sign-in.
    await withToken('a1');
    expect(upstream.refreshed).toHaveLength(2);
    await time.pass(60_000);
    await withToken('a0');
    expect(upstream.refreshed).toHaveLength(3);
    await time.wait(a.forget('t1'));
    await withToken('a0');
    expect(upstream.refreshed).toHaveLength(4);
    await a.end('t1');
    expect(await kind(b)).toBe('ended');
  });

  it('that the upstream issues again counts, whatever another instance notes of it at that moment', async () => {
    const { time, a, b, kind, upstream, swap, writes } = start();
    upstream.verdict = () => REFUSED;
    await kind(a);
    writes.mockImplementationOnce(async (...change) => {
      await b.end('t1');
      return swap(...change);
    });
    await time.wait(a.forget('t1'));
    upstream.verdict = () => renewed(2);
    expect(await kind(a)).toBe('renewed');
  });

  it('is noted once when it is presented, and again when very many others have come after it', () => {
    const { a, writes } = start();
    for (let times = 0; times < 3; times++) a.presented.note('t1');
    expect(writes).toHaveBeenCalledTimes(1);
    for (let other = 0; other < 50_000; other++) a.presented.note(`other-${other}`);
    a.presented.note('t1');
    expect(writes).toHaveBeenCalledTimes(50_002);
  });
});

it('A chain is followed for 32 tokens by a request, a response of before, and a sign-out', async () => {
  const { clock, store, upstream, a, kind } = start();
  for (let index = 0; index < 50; index++) {
    const fact = await factOf(renewed(index + 1), `t${index}`);
    await store.swap(factKey(`t${index}`), undefined, fact, 300_000);
  }
  expect(await kind(a, 't0', clock.now() - 60_000)).toBe('unreachable');
  expect(upstream.refreshed).toEqual([]);
  expect(await a.newest({ accessToken: 'a0', refreshToken: 't0', expiresInSeconds: 1 })).toBeUndefined();
  expect((await a.end('t0')).newest?.refreshToken).toBe('t31');
});

it('A flood of made-up sign-outs does not let a refresh bring back a session that was signed out', async () => {
  // With room for 50 facts that strangers can cause, and 350 others.
  const { time, upstream, a, kind, hold } = start({}, new Ledger(12 * 400 * FACT_BYTES));
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
