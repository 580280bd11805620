import { beforeEach, describe, expect, it, jest } from 'bun:test';
import { Admission } from '../../src/gateway/admission/admission.ts';
import type { CallKind } from '../../src/gateway/admission/call-rules.ts';
import type { Permit } from '../../src/gateway/admission/permit.ts';
import { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { ObservedBody } from '../../src/gateway/exchange/observed-body.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import {
  CALL_BYTES,
  READ_AHEAD_BYTES,
  STREAM_BASE_BYTES,
  STREAMED_BODY_BYTES,
} from '../../src/gateway/settings/memory.ts';
import { pass, settle } from '../support/passing-time.ts';
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

/** Streams a body whose reader takes nothing. Its record says whether it was cut off. */
async function streamToStoppedReader(admission: Admission, token: string): Promise<RequestRecord> {
  const memory = await enter(admission, 'get', token);
  memory.reserveBody(STREAMED_BODY_BYTES);
  const record = new RequestRecord(new Request('http://gateway.test'));
  const client = { connection: undefined, onUpstreamEnd: () => {} };
  new ObservedBody({ reader: null }, record, memory, client).waitsFor = 'reader';
  return record;
}

describe('a call that is admitted', () => {
  beforeEach(() => void jest.useFakeTimers());

  // Who is refused by a full pool or ledger before it is admitted: faults/overload.test.ts.
  it.each<[CallKind, ofBodies: number, ofSession: number | undefined, readAheadBytes: number]>([
    ['read', 31 / 32, 1 / 4, 0],
    ['head', 7 / 8, 1 / 4, 0],
    ['get', 7 / 8, 1 / 4, READ_AHEAD_BYTES],
    ['change', 7 / 8, 1 / 8, STREAMED_BODY_BYTES],
    // The rest is for other calls, such as a refresh.
    ['generation', 15 / 16, 1 / 12, 0],
    // Strangers are refused first.
    ['public', 3 / 4, undefined, READ_AHEAD_BYTES],
  ])(
    'as %s fills %d of the ledger with its body, and a session %d of it',
    async (kind, ofBodies, ofSession, ahead) => {
      const admission = startAdmission();
      const { ledger } = admission;
      const permit = await enter(admission, kind, ofSession === undefined ? undefined : 'token');
      void permit.reserveReadAhead();
      expect([ledger.inUse, ledger.expected]).toEqual([CALL_BYTES + ahead, ahead]);
      if (ofSession) {
        permit.reserveBody(ledger.limit * ofSession);
        expect(() => permit.reserveBody(ledger.limit * ofSession + 1)).toThrow(refusal(429));
      }
      permit.reserveBody(0);
      ledger.take(Math.floor(ledger.limit * ofBodies) - CALL_BYTES - 100);
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

  it.each<[CallKind, share: number, bytes: number]>([
    ['public', 25 / 32, CALL_BYTES],
    ['head', 57 / 64, CALL_BYTES],
    ['get', 57 / 64, CALL_BYTES],
    ['change', 57 / 64, CALL_BYTES],
    // Also the base of its audio.
    ['generation', 31 / 32, CALL_BYTES + STREAM_BASE_BYTES],
    ['read', 1, CALL_BYTES],
  ])(
    'as %s is refused when more than %d of the ledger would be in use, with %d bytes',
    (kind, share, bytes) => {
      const admission = startAdmission();
      const { ledger } = admission;
      ledger.take(ledger.limit * share - bytes);
      admission.refuseIfFull(kind, 'token');
      ledger.take(1);
      expect(() => admission.refuseIfFull(kind, 'token')).toThrow(refusal(503));
    },
  );

  it('as generation has more memory while its reader does not keep up', async () => {
    const admission = startAdmission();
    const { ledger } = admission;
    const permit = await enter(admission, 'generation', 'token');
    permit.tryReservePaid(Number.POSITIVE_INFINITY);
    const reserved = () => [ledger.inUse - CALL_BYTES, ledger.borrowed];
    expect(permit.fallBehind()).toBeTrue();
    expect(reserved()).toEqual([STREAMED_BODY_BYTES, STREAMED_BODY_BYTES - STREAM_BASE_BYTES]);
    permit.catchUp();
    expect(reserved()).toEqual([STREAM_BASE_BYTES, 0]);
    permit.fallBehind();
    permit.release();
    expect([ledger.inUse, ledger.borrowed]).toEqual([0, 0]);
  });

  it('and waits for memory is served when the kernel charges less, without a release', async () => {
    const kernel = { charges: 0 };
    const admission = startAdmission(() => kernel.charges);
    await streamToStoppedReader(admission, 'other');
    const permit = await enter(admission, 'get', 'token');
    kernel.charges = 256 * 1024 ** 2;
    await pass(100);
    const waiting = permit.reserveReadAhead();
    kernel.charges = 0;
    await pass(100);
    await waiting;
    expect(permit.bodyBytes).toBe(READ_AHEAD_BYTES);
  });

  it('as public has a place where there is but one', () => {
    const admission = new Admission(testSettings({ ...ADDRESSES, MAX_IN_FLIGHT_REQUESTS: '1' }));
    admission.refuseIfFull('public', undefined);
  });

  it('has its body cut off when the kernel charges too much, and no other one for the same bytes', async () => {
    const kernel = { charges: 0 };
    const admission = startAdmission(() => kernel.charges);
    const { ledger } = admission;
    const records = await Promise.all(['a', 'b'].map((token) => streamToStoppedReader(admission, token)));
    await pass(10_000);
    kernel.charges = (ledger.limit * 15) / 16 - ledger.charged() + STREAMED_BODY_BYTES;
    await pass(100);
    expect(records.map(({ cutOff }) => cutOff)).toEqual(['room for others', undefined]);
  });

  it('as generation takes the room of a reader who stands still, also of another user', async () => {
    const admission = startAdmission();
    const { ledger } = admission;
    const record = await streamToStoppedReader(admission, 'other');
    await pass(10_000);
    ledger.take((ledger.limit * 31) / 32 - ledger.inUse);
    expect(record.cutOff).toBeUndefined();
    admission.refuseIfFull('generation', 'token');
    expect(record.cutOff).toBe('room for others');
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

  it('whose session has its share takes no room of another', async () => {
    const admission = startAdmission();
    const record = await streamToStoppedReader(admission, 'other');
    await pass(10_000);
    const permit = await enter(admission, 'get', 'own');
    expect(() => permit.reserveBody(admission.ledger.limit / 4 + 1)).toThrow(refusal(429));
    expect(record.cutOff).toBeUndefined();
  });

  it('as get does not wait behind strangers, who may use less', async () => {
    const admission = startAdmission();
    const { ledger } = admission;
    const [stranger, user] = [await enter(admission, 'public'), await enter(admission, 'get', 'token')];
    ledger.take(ledger.limit - ledger.inUse);
    for (const permit of [stranger, user]) void permit.reserveReadAhead();
    ledger.release((ledger.limit * 5) / 32);
    await settle();
    expect([stranger.bodyBytes, user.bodyBytes]).toEqual([0, READ_AHEAD_BYTES]);
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
