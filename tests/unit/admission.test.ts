import { beforeEach, describe, expect, it, jest } from 'bun:test';
import { Admission } from '../../src/gateway/admission/admission.ts';
import { Budget } from '../../src/gateway/admission/budget.ts';
import type { CallKind } from '../../src/gateway/admission/call-rules.ts';
import type { Permit } from '../../src/gateway/admission/permit.ts';
import { Exchange } from '../../src/gateway/exchange/exchange.ts';
import {
  CALL_BYTES,
  READ_AHEAD_BYTES,
  STREAM_BASE_BYTES,
  STREAMED_BODY_BYTES,
} from '../../src/gateway/settings/memory.ts';
import { pass } from '../support/passing-time.ts';
import { CLOSED } from '../support/session-calls.ts';
import { testSettings } from '../support/world.ts';

const refusal = (status: 429 | 503) => expect.objectContaining({ status });

const ADDRESSES = { UPSTREAM_URL: CLOSED, IDP_URL: CLOSED };

/** Of a gateway in 256 MB, whose ledger has 192. */
function startAdmission(readCharge?: () => number): Admission {
  return new Admission(testSettings(ADDRESSES, 256 * 1024 ** 2), readCharge);
}

/** Enters as a request does, which ends when it is refused. A refusal at once rejects as well as a later one. */
async function enter(admission: Admission, kind: CallKind, token?: string): Promise<Permit> {
  const exchange = new Exchange(new Request('http://gateway.test'), null);
  try {
    return await admission.enter(kind, token, exchange);
  } catch (refused) {
    exchange.end();
    throw refused;
  }
}

interface Share {
  readonly kind: CallKind;
  readonly pool: 'reads' | 'streams';
  /** How much of its pool and of the ledger is in use when there is no place for it, with the bytes that it needs. */
  readonly ofPool: number;
  readonly ofLedger: number;
  readonly bytes: number;
  /** How much of the ledger may be in use with its body, and how much of it by one session. */
  readonly ofBodies: number;
  readonly ofSession: number | undefined;
  /** What it reserves before its response has a head. */
  readonly readAheadBytes: number;
}
const ORDINARY = {
  pool: 'streams',
  ofPool: 1,
  ofLedger: 1,
  bytes: CALL_BYTES,
  ofBodies: 7 / 8,
  ofSession: 1 / 4,
  readAheadBytes: 0,
} as const;

describe('a call that is admitted', () => {
  beforeEach(() => void jest.useFakeTimers());

  it.each<Share>([
    { ...ORDINARY, kind: 'read', pool: 'reads', ofBodies: 31 / 32 },
    { ...ORDINARY, kind: 'head' },
    { ...ORDINARY, kind: 'get', readAheadBytes: READ_AHEAD_BYTES },
    { ...ORDINARY, kind: 'change', ofSession: 1 / 8, readAheadBytes: STREAMED_BODY_BYTES },
    // The rest is for other calls, such as a refresh.
    {
      ...ORDINARY,
      kind: 'generation',
      bytes: CALL_BYTES + STREAM_BASE_BYTES,
      ofLedger: 15 / 16,
      ofBodies: 15 / 16,
      ofSession: 1 / 12,
    },
    // Strangers are refused first.
    {
      ...ORDINARY,
      kind: 'public',
      ofPool: 3 / 4,
      ofBodies: 3 / 4,
      ofSession: undefined,
      readAheadBytes: READ_AHEAD_BYTES,
    },
  ])(
    'as $kind has its share of $pool and of the ledger, and no more',
    async ({ kind, pool, ofPool, bytes, ofLedger, ofBodies, ofSession, readAheadBytes }) => {
      const admission = startAdmission();
      const { ledger } = admission;
      const token = kind === 'public' ? undefined : 'token';
      for (const [budget, share, needed] of [
        [admission[pool], ofPool, 1],
        [ledger, ofLedger, bytes],
      ] as const) {
        const most = Math.ceil(budget.limit * share) - needed;
        budget.take(most);
        admission.refuseIfFull(kind, token);
        budget.take(1);
        const refused = enter(admission, kind, token).catch((error) => error);
        await pass(2000);
        expect(await refused).toEqual(refusal(503));
        budget.release(most + 1);
      }
      const permit = await enter(admission, kind, token);
      void permit.reserveReadAhead();
      expect([ledger.inUse, ledger.expected]).toEqual([CALL_BYTES + readAheadBytes, readAheadBytes]);
      if (ofSession !== undefined) {
        permit.reserveBody(ledger.limit * ofSession);
        expect(() => permit.reserveBody(ledger.limit * ofSession + 1)).toThrow(refusal(429));
      }
      permit.reserveBody(0);
      const free = Math.floor(ledger.limit * ofBodies) - CALL_BYTES;
      ledger.take(free - 100);
      permit.reserveBody(100);
      expect(() => permit.reserveBody(102)).toThrow(refusal(503));
    },
  );

  it('as read waits 2 s for a place, unless more of the memory is in use than strangers may use', async () => {
    const admission = startAdmission();
    const { ledger, reads } = admission;
    reads.take(reads.limit);
    ledger.take((ledger.limit * 3) / 4);
    const served = enter(admission, 'read', 'token');
    await pass(1999);
    reads.release(1);
    await served;
    const late = enter(admission, 'read', 'token').catch((error) => error);
    await pass(2000);
    expect(await late).toEqual(refusal(503));
    ledger.take(ledger.limit / 16);
    await expect(enter(admission, 'read', 'token')).rejects.toThrow(refusal(503));
    expect([ledger.inUse, admission.perSession.size]).toEqual([(ledger.limit * 13) / 16 + CALL_BYTES, 1]);
  });

  it('has no body while the kernel charges too much, unless it keeps a session alive', async () => {
    const kernel = { charges: 0 };
    const admission = startAdmission(() => kernel.charges);
    const permits = await Promise.all(
      (['read', 'get', 'public'] as const).map((kind) => enter(admission, kind, 'token')),
    );
    kernel.charges = 256 * 1024 ** 2;
    await pass(10);
    const outcomes = permits.map((permit) => {
      try {
        permit.reserveBody(1000);
        return 'reserved';
      } catch {
        return 'refused';
      }
    });
    expect(outcomes).toEqual(['reserved', 'refused', 'refused']);
  });

  it('as change reads its response on without memory, however fast it comes, and as get does not', async () => {
    const kernel = { charges: 0 };
    const admission = startAdmission(() => kernel.charges);
    const tryReserveRead = async (kind: CallKind) => {
      const permit = await enter(admission, kind, 'token');
      kernel.charges = 0;
      await pass(10);
      permit.reserveBody(STREAMED_BODY_BYTES);
      kernel.charges = 256 * 1024 ** 2;
      await pass(10);
      return permit.tryReserveRead('drained', true);
    };
    expect([await tryReserveRead('change'), await tryReserveRead('get')]).toEqual([true, false]);
  });

  it('whose session has its share is refused at once, and others behind it are served', async () => {
    const admission = startAdmission();
    const { ledger } = admission;
    const own = await enter(admission, 'get', 'own');
    own.reserveBody(ledger.limit / 4);
    const others = Math.floor((ledger.limit * 5) / 8) - CALL_BYTES;
    ledger.take(others);
    const [more, other] = [await enter(admission, 'get', 'own'), await enter(admission, 'get', 'other')];
    const outcomes = [more, other].map((permit) =>
      Promise.try(() => permit.reserveReadAhead()).then(
        () => 'served',
        ({ status }) => status,
      ),
    );
    expect(await outcomes[0]).toBe(429);
    ledger.release(others);
    expect(await outcomes[1]).toBe('served');
  });

  it('waits for memory and then for a place, together no longer than its patience', async () => {
    const admission = startAdmission();
    const { ledger, signOuts } = admission;
    ledger.take(ledger.limit);
    signOuts.take(signOuts.limit);
    await expect(admission.shortCall('signOuts', async () => 'done')).rejects.toMatchObject({ status: 503 });
    const waiting = admission.shortCall('signOuts', async () => 'done', 60_000);
    ledger.release(CALL_BYTES);
    await Promise.resolve();
    signOuts.release(1);
    expect(await waiting).toBe('done');
    expect([ledger.inUse, signOuts.inUse]).toEqual([ledger.limit - CALL_BYTES, signOuts.limit - 1]);
    signOuts.take(1);
    const late = admission.shortCall('signOuts', async () => 'done', 1000).catch((error) => error);
    await pass(1000);
    expect(await late).toEqual(refusal(503));
    expect(ledger.inUse).toBe(ledger.limit - CALL_BYTES);
  });
});

it('a budget lets 500 wait, because each keeps its memory meanwhile, and serves all from one release', async () => {
  const budget = new Budget(500);
  budget.take(499);
  await expect(budget.reserve(2, 0)).rejects.toThrow();
  budget.take(1);
  const waiting = Array.from({ length: 500 }, () => budget.reserve(1, 60_000));
  await expect(budget.reserve(1, 60_000)).rejects.toThrow();
  budget.release(500);
  await Promise.all(waiting);
  expect([budget.inUse, budget.refused]).toEqual([500, 2]);
});

describe('the limit of a session', () => {
  it.each<[string, string, string, CallKind[], CallKind[], CallKind[]]>([
    ['on its calls', '2', '0', ['get', 'read'], ['get', 'generation'], []],
    ['on its generations', '0', '1', ['get', 'get', 'generation'], ['generation'], ['get']],
    ['on neither with 0 for both', '0', '0', Array(200).fill('generation'), [], ['get', 'generation']],
  ])('is one %s', async (_, calls, generations, inFlight, refused, admitted) => {
    const limits = { MAX_IN_FLIGHT_PER_SESSION: calls, MAX_GENERATIONS_PER_SESSION: generations };
    const admission = new Admission(testSettings({ ...ADDRESSES, ...limits }));
    for (const kind of inFlight) await enter(admission, kind, 'token');
    for (const kind of refused) expect(() => admission.refuseIfFull(kind, 'token')).toThrow(refusal(429));
    for (const kind of admitted) admission.refuseIfFull(kind, 'token');
    admission.refuseIfFull('generation', 'other');
  });

  it('counts a call with its generation and its bytes for one session at a time, and forgets an idle one', async () => {
    const limits = { MAX_IN_FLIGHT_PER_SESSION: '2', MAX_GENERATIONS_PER_SESSION: '1' };
    const admission = new Admission(testSettings({ ...ADDRESSES, ...limits }));
    const { perSession } = admission;
    const [generation, call] = [
      await enter(admission, 'generation', 'a'),
      await enter(admission, 'get', 'a'),
    ];
    generation.reserveBody(100);
    call.reserveBody(7);
    generation.renewed('b');
    expect(perSession.useOf('a', false)).toMatchObject({ calls: 1, generations: 0, bytes: 7 });
    expect(perSession.useOf('b', false)).toMatchObject({ calls: 1, generations: 1, bytes: 100 });
    // It does not refuse itself when the upstream gives the same access token again.
    generation.renewed('b');
    const other = await enter(admission, 'generation', 'a');
    expect(() => other.renewed('b')).toThrow(refusal(429));
    for (const each of [generation, call, other]) each.release();
    expect(perSession.size).toBe(0);
  });
});
