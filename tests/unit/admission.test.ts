import { beforeEach, describe, expect, it, jest } from 'bun:test';
import { Admission } from '../../src/gateway/admission/admission.ts';
import type { CallKind } from '../../src/gateway/admission/call-rules.ts';
import { ObservedBody } from '../../src/gateway/exchange/observed-body.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import * as memory from '../../src/gateway/settings/memory.ts';
import { pass, settle } from '../support/passing-time.ts';
import { testSettings } from '../support/world.ts';

const { CALL_BYTES, READ_AHEAD_BYTES, STREAM_BASE_BYTES, STREAMED_BODY_BYTES } = memory;
const LIMIT_BYTES = 256 * 1024 ** 2;

const refusal = (status: 429 | 503) => expect.objectContaining({ status });

beforeEach(() => void jest.useFakeTimers());

/** In 256 MB, of which the ledger has 192. */
function start(environment: Environment = {}) {
  const kernel = { charges: 0 };
  const admission = new Admission(testSettings(environment, LIMIT_BYTES), () => kernel.charges);
  /** A refusal at once rejects as well as a later one. */
  const enter = async (kind: CallKind, token?: string) => admission.enter(kind, token, { permit: undefined });
  /** Streams a body whose reader takes nothing. Its record says whether it was cut off. */
  const streamToStoppedReader = async (token: string) => {
    const permit = await enter('get', token);
    permit.reserveBody(STREAMED_BODY_BYTES);
    const record = new RequestRecord(new Request('http://gateway.test'));
    const client = { connection: undefined, onUpstreamEnd: () => {} };
    new ObservedBody({ reader: null }, record, permit, client).waitsFor = 'reader';
    return record;
  };
  const { ledger } = admission;
  return { admission, ledger, kernel, enter, streamToStoppedReader };
}

describe('a call that is admitted', () => {
  // Which kind a route makes, and what is left alone: faults/overload.test.ts.
  it.each<
    [CallKind, ofCalls: number, audio: number, ofBodies: number, ofSession: number | undefined, number]
  >([
    ['read', 1, 0, 31 / 32, 1 / 4, 0],
    ['head', 57 / 64, 0, 7 / 8, 1 / 4, 0],
    ['get', 57 / 64, 0, 7 / 8, 1 / 4, READ_AHEAD_BYTES],
    ['change', 57 / 64, 0, 7 / 8, 1 / 8, STREAMED_BODY_BYTES],
    // The rest is for other calls, such as a refresh. It needs also the base of its audio.
    ['generation', 31 / 32, STREAM_BASE_BYTES, 15 / 16, 1 / 12, 0],
    // Strangers are refused first.
    ['public', 25 / 32, 0, 3 / 4, undefined, READ_AHEAD_BYTES],
  ])(
    'as %s fills %d of the ledger, with %d bytes for audio, %d with its body, and a session %d of it',
    async (kind, ofCalls, audio, ofBodies, ofSession, ahead) => {
      const { admission, ledger, enter } = start();
      const permit = await enter(kind, ofSession === undefined ? undefined : 'token');
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
      ledger.take(ledger.limit * ofCalls - CALL_BYTES - audio - ledger.inUse);
      admission.refuseIfFull(kind, undefined);
      ledger.take(1);
      expect(() => admission.refuseIfFull(kind, undefined)).toThrow(refusal(503));
    },
  );

  it('as read waits 2 s for a place, unless more of the memory is in use than strangers may use', async () => {
    const { admission, ledger, enter } = start();
    const { reads } = admission;
    reads.take(reads.limit);
    ledger.take((ledger.limit * 3) / 4);
    const served = enter('read', 'token');
    await pass(1999);
    reads.release(1);
    await served;
    const late = enter('read', 'token').catch((error) => error);
    await pass(2000);
    expect(await late).toEqual(refusal(503));
    ledger.take(ledger.limit / 16);
    const refused = enter('read', 'token').catch((error) => error);
    expect(await Promise.race([refused, settle()])).toEqual(refusal(503));
  });

  it('has no memory while the kernel charges too much, unless a session or a change depends on it', async () => {
    const { kernel, enter } = start();
    const [read, stranger] = [await enter('read', 'token'), await enter('public')];
    const [change, get] = [await enter('change', 'token'), await enter('get', 'token')];
    for (const permit of [change, get]) permit.reserveBody(STREAMED_BODY_BYTES);
    kernel.charges = LIMIT_BYTES;
    await pass(10);
    read.reserveBody(1000);
    expect(() => stranger.reserveBody(1000)).toThrow(refusal(503));
    expect(() => get.reserveBody(STREAMED_BODY_BYTES + 1)).toThrow(refusal(503));
    // However fast the response comes.
    expect([change, get].map((permit) => permit.tryReserveRead('drained', true))).toEqual([true, false]);
  });

  it('as get has no slice more for a reader who is behind when 0.6 of its share are in use', async () => {
    const { ledger, enter } = start();
    const permit = await enter('get', 'token');
    permit.reserveBody(0, 1000);
    ledger.take(Math.ceil(ledger.limit * 0.6 * (7 / 8)) - 1000 - ledger.inUse);
    expect(permit.tryReserveRead('behind', false)).toBeTrue();
    permit.onRead();
    ledger.take(1);
    expect(permit.tryReserveRead('behind', false)).toBeFalse();
    expect(permit.tryReserveRead('drained', false)).toBeTrue();
  });

  it('as generation has more memory while its reader does not keep up', async () => {
    const { ledger, enter } = start();
    const permit = await enter('generation', 'token');
    permit.tryReservePaid(Number.POSITIVE_INFINITY);
    const reserved = () => [ledger.inUse - CALL_BYTES, ledger.borrowed];
    expect(permit.fallBehind()).toBeTrue();
    expect(reserved()).toEqual([STREAMED_BODY_BYTES, STREAMED_BODY_BYTES - STREAM_BASE_BYTES]);
    permit.catchUp();
    expect(reserved()).toEqual([STREAM_BASE_BYTES, 0]);
    permit.fallBehind();
    permit.release();
    expect([permit.bodyBytes, ledger.inUse, ledger.borrowed]).toEqual([0, 0, 0]);
    permit.giveBodyUp();
    expect(ledger.inUse).toBe(0);
  });

  it('as generation has it at once for a track whose length is known, because that arrives at once', async () => {
    const { ledger, enter } = start();
    const permit = await enter('generation', 'token');
    expect(permit.tryReservePaid(STREAMED_BODY_BYTES)).toBeTrue();
    expect([ledger.inUse - CALL_BYTES, ledger.expected]).toEqual([STREAMED_BODY_BYTES, STREAMED_BODY_BYTES]);
  });

  it('and waits for memory is served when the kernel charges less, without a release', async () => {
    const { kernel, enter, streamToStoppedReader } = start();
    await streamToStoppedReader('other');
    const permit = await enter('get', 'token');
    kernel.charges = LIMIT_BYTES;
    await pass(100);
    const waiting = permit.reserveReadAhead();
    kernel.charges = 0;
    await pass(100);
    await waiting;
    expect(permit.bodyBytes).toBe(READ_AHEAD_BYTES);
  });

  it('has its body cut off when the kernel charges too much, and no other one for the same bytes', async () => {
    const { kernel, ledger, streamToStoppedReader } = start();
    const records = await Promise.all(['a', 'b'].map(streamToStoppedReader));
    await pass(10_000);
    kernel.charges = (ledger.limit * 15) / 16 - ledger.charged() + STREAMED_BODY_BYTES;
    await pass(100);
    expect(records.map(({ cutOff }) => cutOff)).toEqual(['room for others', undefined]);
  });

  it('takes the room of another user who stands still as generation, but not for more than its share', async () => {
    const { admission, ledger, enter, streamToStoppedReader } = start();
    const record = await streamToStoppedReader('other');
    await pass(10_000);
    const permit = await enter('get', 'own');
    expect(() => permit.reserveBody(ledger.limit / 4 + 1)).toThrow(refusal(429));
    ledger.take((ledger.limit * 31) / 32 - ledger.inUse);
    expect(record.cutOff).toBeUndefined();
    admission.refuseIfFull('generation', 'own');
    expect(record.cutOff).toBe('room for others');
  });

  it('whose session has its share is refused at once, and others behind it are served', async () => {
    const { ledger, enter } = start();
    (await enter('get', 'own')).reserveBody(ledger.limit / 4);
    const others = Math.floor((ledger.limit * 5) / 8) - CALL_BYTES;
    ledger.take(others);
    const [more, other] = [await enter('get', 'own'), await enter('get', 'other')];
    const refused = more.reserveReadAhead()?.catch((error) => error);
    const served = other.reserveReadAhead();
    expect(await Promise.race([refused, settle()])).toEqual(refusal(429));
    ledger.release(others);
    await served;
    expect(other.bodyBytes).toBe(READ_AHEAD_BYTES);
  });

  it('as get does not wait behind strangers, who may use less', async () => {
    const { ledger, enter } = start();
    const [stranger, user] = [await enter('public'), await enter('get', 'token')];
    ledger.take(ledger.limit - ledger.inUse);
    for (const permit of [stranger, user]) void permit.reserveReadAhead();
    ledger.release((ledger.limit * 5) / 32);
    await settle();
    expect([stranger.bodyBytes, user.bodyBytes]).toEqual([0, READ_AHEAD_BYTES]);
  });

  it('waits for memory and then for a place, together no longer than its patience', async () => {
    const { admission, ledger } = start();
    const { signOuts } = admission;
    ledger.take(ledger.limit);
    signOuts.take(signOuts.limit);
    const [late, served] = [1000, 3000].map((patienceMs) => {
      return admission.shortCall('signOuts', async () => 'done', patienceMs).catch((error) => error);
    });
    await pass(600);
    ledger.release(2 * CALL_BYTES);
    await pass(400);
    expect(await late).toEqual(refusal(503));
    signOuts.release(1);
    expect(await served).toBe('done');
    expect([ledger.inUse, signOuts.inUse]).toEqual([ledger.limit - 2 * CALL_BYTES, signOuts.limit - 1]);
  });
});

it('a relayed body, which stays for minutes, is refused where one that is read here is not', () => {
  const { admission, ledger } = start();
  ledger.take((ledger.limit * 15) / 16);
  expect(() => admission.relayedBodies.open(0)).toThrow(refusal(503));
  admission.requestBodies.open(0);
});

describe('the limit of a session', () => {
  it.each<[string, string, string, CallKind[], CallKind[], CallKind[]]>([
    ['on its calls', '2', '0', ['get', 'read'], ['get', 'generation'], []],
    ['on its generations', '0', '1', ['get', 'get', 'generation'], ['generation'], ['get']],
    ['on neither with 0 for both', '0', '0', Array(200).fill('generation'), [], ['get', 'generation']],
  ])('is one %s', async (_, calls, generations, inFlight, refused, admitted) => {
    const limits = { MAX_IN_FLIGHT_PER_SESSION: calls, MAX_GENERATIONS_PER_SESSION: generations };
    const { admission, enter } = start(limits);
    for (const kind of inFlight) await enter(kind, 'token');
    for (const kind of refused) expect(() => admission.refuseIfFull(kind, 'token')).toThrow(refusal(429));
    for (const kind of admitted) admission.refuseIfFull(kind, 'token');
    admission.refuseIfFull('generation', 'other');
  });

  it('counts a call with its generation and its bytes for one session at a time, and forgets an idle one', async () => {
    const { admission, enter } = start({ MAX_IN_FLIGHT_PER_SESSION: '2', MAX_GENERATIONS_PER_SESSION: '1' });
    const { perSession } = admission;
    const [generation, call] = [await enter('generation', 'a'), await enter('get', 'a')];
    generation.reserveBody(100);
    call.reserveBody(7);
    // It does not refuse itself when the upstream gives the same access token again.
    for (const token of ['b', 'b']) generation.renewed(token);
    expect(perSession.useOf('a', false)).toMatchObject({ calls: 1, generations: 0, bytes: 7 });
    expect(perSession.useOf('b', false)).toMatchObject({ calls: 1, generations: 1, bytes: 100 });
    const other = await enter('generation', 'a');
    expect(() => other.renewed('b')).toThrow(refusal(429));
    for (const each of [generation, call, other]) each.release();
    expect(perSession.size).toBe(0);
  });
});
