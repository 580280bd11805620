import { beforeEach, describe, expect, it, jest } from 'bun:test';
import { Admission } from '../../src/gateway/admission/admission.ts';
import { CALLS, type CallKind } from '../../src/gateway/admission/calls.ts';
import { LADDER } from '../../src/gateway/admission/ladder.ts';
import type { Permit } from '../../src/gateway/admission/permit.ts';
import * as prices from '../../src/gateway/admission/prices.ts';
import { ObservedBody } from '../../src/gateway/exchange/observed-body.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { Deadline } from '../../src/gateway/upstream/deadline.ts';
import { RelayedBody } from '../../src/gateway/upstream/relayed-body.ts';
import { pass, settle } from '../support/passing-time.ts';
import { testSettings } from '../support/world.ts';

const { CALL_BYTES, KEEPS_UP_BYTES, priceOfSlices, priceOfStream } = prices;
const LIMIT_BYTES = 256 * 1024 ** 2;
const UNKNOWN = Number.POSITIVE_INFINITY;
const priceOfWhole = (bytes: number) => ({ keepsUp: bytes, behind: bytes, aRead: 0 });
const BEHIND_BYTES = priceOfStream(UNKNOWN).behind;

const refusal = (status: 429 | 503) => expect.objectContaining({ status });

beforeEach(() => void jest.useFakeTimers());

/** In 256 MB, of which the ledger has 192. */
function start(environment: Environment = {}) {
  const kernel = { charges: 0 };
  const admission = new Admission(testSettings(environment, LIMIT_BYTES), () => kernel.charges);
  const { ledger, endpoints } = admission;
  /** A refusal at once rejects as well as a later one. */
  const enter = async (kind: CallKind, token?: string) => admission.enter(kind, token, { permit: undefined });
  const client = new AbortController();
  /** Begins a call to an endpoint of its kind. Resolves to the refusal, if there is one. */
  const begin = async (permit: Permit, path = '/v1/library') => {
    try {
      await permit.memory.start(endpoints.of('GET', path, permit.rules.unknownBytes), client.signal);
    } catch (error) {
      return error;
    }
    return undefined;
  };
  const reserve = async (permit: Permit, bytes: number) =>
    permit.memory.reserveBody(priceOfWhole(bytes), bytes, client.signal);
  /** Streams a body whose reader takes nothing. Its record says whether it was cut off. */
  const streamToStoppedReader = async (token?: string) => {
    const permit = await enter(token ? 'get' : 'public', token);
    await permit.memory.reserveBody(priceOfStream(10 * BEHIND_BYTES), 10 * BEHIND_BYTES, client.signal);
    const record = new RequestRecord(new Request('http://gateway.test'));
    const of = { connection: undefined, onUpstreamEnd: () => {} };
    new ObservedBody({ rest: null }, record, permit.memory, of).waitsFor = 'reader';
    return record;
  };
  /** Takes what the rung has, but for so many bytes. */
  const leave = (bytes: number, { share }: { share: number }) =>
    ledger.take(Math.floor(ledger.limit * share) - ledger.inUse - bytes);
  return { admission, ledger, kernel, client, enter, begin, reserve, streamToStoppedReader, leave };
}

describe('a call', () => {
  // Which kind a route makes, and what is left alone: faults/overload.test.ts.
  it.each<[CallKind, audio: number]>([
    ['public', 0],
    ['get', 0],
    ['head', 0],
    ['change', 0],
    ['generation', KEEPS_UP_BYTES],
    ['read', 0],
  ])('as %s has the room of its rung, and its body that of its own', async (kind, audio) => {
    const { admission, enter, begin, leave, ledger, client } = start();
    const { rung, bodyRung } = CALLS[kind];
    const permit = await enter(kind, kind === 'public' ? undefined : 'token');
    expect(await begin(permit)).toBeUndefined();
    permit.memory.headArrived(0, 200);
    leave(CALL_BYTES + audio, rung);
    admission.checkRoom(kind, undefined);
    ledger.take(1);
    expect(() => admission.checkRoom(kind, undefined)).toThrow(refusal(503));
    if (ledger.inUse > ledger.limit * bodyRung.share) return;
    leave(100, bodyRung);
    expect(permit.memory.reserveBody(priceOfWhole(100), 100, client.signal)).toBeUndefined();
    expect(permit.memory.reserveBody(priceOfWhole(101), 101, client.signal)).toBeInstanceOf(Promise);
  });

  it('reserves what its endpoint usually has when the head arrives, twice, within bounds', async () => {
    const { ledger, enter, begin } = start();
    const priceAfter = async (bytes?: number, status = 200) => {
      const permit = await enter('get', 'token');
      await begin(permit);
      const price = ledger.inUse - CALL_BYTES;
      expect(ledger.expected).toBe(price);
      if (bytes !== undefined) permit.memory.headArrived(bytes, status);
      permit.release();
      return price;
    };
    // An error says nothing of what a success has.
    expect(await priceAfter(10, 401)).toBe(prices.UNKNOWN_GET_BYTES);
    expect(await priceAfter(100_000)).toBe(prices.UNKNOWN_GET_BYTES);
    expect(await priceAfter(10, 404)).toBe(200_000);
    expect(await priceAfter(0)).toBe(200_000);
    // It falls by a sixteenth of the difference, and rises by half of it.
    expect(await priceAfter(93_750 + 100_000)).toBe(187_500);
    expect(await priceAfter(10 ** 9)).toBe(287_500);
    expect(await priceAfter()).toBe(prices.UNREAD_BYTES);
    for (let call = 0; call < 100; call++) await priceAfter(10);
    expect(await priceAfter()).toBe(prices.LEAST_READ_AHEAD_BYTES);
    expect([ledger.inUse, ledger.expected]).toEqual([0, 0]);
  });

  it.each(['head', 'get'] as const)(
    'as %s pays for no body that its response names and does not have',
    async (kind) => {
      const { admission, enter, client } = start();
      const { memory } = await enter(kind, 'token');
      await memory.start(admission.endpoints.of('GET', '/v1/library', 0), client.signal);
      const response = new Response(null, { status: 304, headers: { 'content-length': '5000000' } });
      expect(
        await new RelayedBody(memory, client.signal).read(response, new Deadline(1000, undefined)),
      ).toBeNull();
      expect(memory.bytes).toBe(0);
    },
  );

  it('is priced by its method and path, in which ids are left out', () => {
    const { endpoints } = start().admission;
    const of = (method: string, path: string) => endpoints.of(method, path, 0);
    const one = of('GET', '/v1/music/creations/c7/content');
    one.learn(0, 200);
    for (const path of ['/v1/music/creations/8/content', `/v1/music/creations/${'x'.repeat(24)}/content`])
      expect(of('GET', path)).toBe(one);
    for (const path of ['/v1/music/creations/own/content', '/v1/music/creations/c7'])
      expect(of('GET', path)).not.toBe(one);
    expect(of('PATCH', '/v1/music/creations/c7/content')).not.toBe(one);
    const callOthers = (method: string, count: number, status: number) => {
      for (let other = 0; other < count; other++) {
        const lengths = [other % 20, (other / 20) % 20, other / 400];
        const path = `/v1/${lengths.map((length) => 'x'.repeat(length)).join('/')}`;
        of(method, path).learn(0, status);
        of(method, path);
      }
    };
    callOthers('GET', 999, 200);
    of('GET', '/v1/music/creations/c7/content');
    callOthers('POST', 500, 200);
    // Anybody can call what does not exist.
    callOthers('PATCH', 2000, 404);
    expect(of('GET', '/v1/music/creations/c7/content')).toBe(one);
    expect(of('GET', '/v1/music/creations/c7')).not.toBe(of('GET', '/v1/music/creations/own/content'));
  });

  it('to an unknown endpoint waits while memory is scarce until another has found out what it costs', async () => {
    const { ledger, enter, begin, leave } = start();
    leave(0, { share: 1 / 2 });
    const [first, second, other] = [
      await enter('get', 'a'),
      await enter('get', 'b'),
      await enter('get', 'c'),
    ];
    expect(await begin(first)).toBeUndefined();
    const waiting = begin(second);
    // It delays no other endpoint.
    expect(await begin(other, '/v1/balance')).toBeUndefined();
    expect(second.memory.bytes).toBe(0);
    first.memory.headArrived(1000, 200);
    expect(await waiting).toBeUndefined();
    expect(second.memory.bytes).toBe(prices.LEAST_READ_AHEAD_BYTES);
    expect(ledger.expected).toBe(prices.LEAST_READ_AHEAD_BYTES + prices.UNKNOWN_GET_BYTES);
  });

  it('waits 10 s for memory, in order of arrival, and is priced again in its turn', async () => {
    const { ledger, enter, begin, leave } = start();
    const known = await enter('get', 'a');
    await begin(known);
    const [first, second, late] = [await enter('get', 'b'), await enter('get', 'c'), await enter('get', 'd')];
    leave(0, LADDER.user);
    const waiting = [begin(first), begin(second, '/v1/unknown')];
    await settle();
    known.memory.headArrived(0, 200);
    expect(await waiting[0]).toBeUndefined();
    await pass(9999);
    const newcomer = begin(late);
    await pass(1);
    expect(await waiting[1]).toEqual(refusal(503));
    ledger.release(BEHIND_BYTES);
    expect(await newcomer).toBeUndefined();
  });

  it('that its client has left waits no longer', async () => {
    const { client, enter, begin, leave } = start();
    const permit = await enter('get', 'a');
    leave(0, LADDER.user);
    const waiting = begin(permit);
    client.abort();
    expect(await waiting).toEqual(refusal(503));
  });

  it('as read waits 2 s for a place, unless more of the memory is in use than strangers may use', async () => {
    const { admission, enter, leave } = start();
    const { reads } = admission;
    reads.inUse = reads.limit;
    const served = enter('read', 'token');
    await pass(1999);
    reads.release();
    await served;
    const late = enter('read', 'token').catch((error) => error);
    await pass(2000);
    expect(await late).toEqual(refusal(503));
    leave(0, LADDER.guest);
    const refused = enter('read', 'token').catch((error) => error);
    expect(await Promise.race([refused, settle()])).toEqual(refusal(503));
  });

  it('and waits for memory is served when the kernel charges less, without a release', async () => {
    const { kernel, enter, begin } = start();
    const permit = await enter('head', 'token');
    kernel.charges = LIMIT_BYTES;
    await pass(10);
    const waiting = begin(permit);
    await pass(100);
    kernel.charges = 0;
    await pass(100);
    expect(await waiting).toBeUndefined();
    permit.release();
    await pass(100);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('waits for memory and then for a place, together no longer than its patience', async () => {
    const { admission, ledger } = start();
    const { signOuts } = admission;
    ledger.take(ledger.limit);
    signOuts.inUse = signOuts.limit;
    const [late, served] = [1000, 3000].map((patienceMs) => {
      return admission.shortCall('signOuts', async () => 'done', patienceMs).catch((error) => error);
    });
    await pass(600);
    ledger.release(2 * CALL_BYTES);
    await pass(400);
    expect(await late).toEqual(refusal(503));
    signOuts.release();
    expect(await served).toBe('done');
    expect([ledger.inUse, signOuts.inUse]).toEqual([ledger.limit - 2 * CALL_BYTES, signOuts.limit - 1]);
  });
});

it.each<[what: string, refuse: (admission: Admission) => unknown]>([
  ['call', (admission) => admission.enter('public', undefined, { permit: undefined })],
  ['upload', ({ relayedBodies, perSession }) => relayedBodies.openUpload(perSession.useOf('own', false))],
])('%s is not refused for garbage for longer than a tick', async (_, ask) => {
  const { admission, kernel, ledger } = start();
  kernel.charges = ledger.limit * LADDER.user.share - ledger.charged();
  await pass(20);
  using gc = jest.spyOn(Bun, 'gc').mockImplementation(() => {
    kernel.charges = 0;
  });
  await pass(2000);
  expect(gc).not.toHaveBeenCalled();
  expect(() => ask(admission)).toThrow(refusal(503));
  await pass(120);
  ask(admission);
  expect([gc.mock.calls.length, ledger.inUse > 0]).toEqual([1, true]);
});

describe('a head', () => {
  it.each([
    ['then has memory for all of it', 9999, BEHIND_BYTES],
    ['goes on with what has arrived', 10_000, prices.UNREAD_BYTES],
  ])('of a change waits 10 s, and %s', async (_, ms, bytes) => {
    const { ledger, enter, client, leave } = start();
    const permit = await enter('change', 'token');
    permit.memory.headArrived(10 * BEHIND_BYTES, 200);
    expect(permit.memory.bytes).toBe(prices.UNREAD_BYTES);
    leave(0, LADDER.session);
    const waiting = permit.memory.reserveBody(
      priceOfStream(10 * BEHIND_BYTES),
      10 * BEHIND_BYTES,
      client.signal,
    );
    await pass(ms);
    ledger.release(ledger.limit / 4);
    await waiting;
    expect(permit.memory.bytes).toBe(bytes);
  });

  it('of a read waits 10 s, and not at all when there is no memory for what has arrived', async () => {
    const { ledger, enter, client, leave } = start();
    const permit = await enter('get', 'token');
    permit.memory.headArrived(10 * BEHIND_BYTES, 200);
    const reserveBody = () =>
      permit.memory.reserveBody(priceOfStream(10 * BEHIND_BYTES), 10 * BEHIND_BYTES, client.signal);
    leave(0, LADDER.playingUser);
    const late = reserveBody()?.catch((error) => error);
    await pass(10_000);
    expect(await late).toEqual(refusal(503));
    ledger.take(1);
    expect(reserveBody).toThrow(refusal(503));
  });

  it.each([
    ['is not made yet has the price of a reader that keeps up', UNKNOWN, KEEPS_UP_BYTES],
    ['is made already has that of one that does not', 10 * BEHIND_BYTES, BEHIND_BYTES],
  ])('of a track that %s', async (_, length, bytes) => {
    const { enter, client } = start();
    const permit = await enter('generation', 'token');
    expect(permit.memory.admitTrack(length, client.signal)).toBeTrue();
    expect(permit.memory.bytes).toBe(bytes);
  });

  it('of a track that is made already waits a minute for that, and one without memory is not streamed', async () => {
    const { ledger, enter, client, leave } = start();
    const [served, late, none] = [
      await enter('generation'),
      await enter('generation'),
      await enter('generation'),
    ];
    leave(0, LADDER.behind);
    const waiting = [served, late].map((permit) => {
      // Room for what has arrived, and not for more.
      ledger.release(prices.UNREAD_BYTES);
      return permit.memory.admitTrack(10 * BEHIND_BYTES, client.signal);
    });
    expect(waiting).toEqual([expect.any(Promise), expect.any(Promise)]);
    leave(0, LADDER.order);
    expect(none.memory.admitTrack(UNKNOWN, client.signal)).toBeFalse();
    await pass(59_900);
    ledger.release(
      ledger.limit * (LADDER.order.share - LADDER.behind.share) + BEHIND_BYTES - prices.UNREAD_BYTES,
    );
    expect(await waiting[0]).toBeTrue();
    await pass(100);
    expect(await waiting[1]).toBeFalse();
    // It is drained, which takes little.
    expect(late.memory.bytes).toBe(KEEPS_UP_BYTES);
  });
});

describe('a body', () => {
  it('has more memory while its reader does not keep up', async () => {
    const { ledger, enter, client } = start();
    const permit = await enter('get', 'token');
    void permit.memory.reserveBody(priceOfStream(UNKNOWN), UNKNOWN, client.signal);
    expect(permit.memory.bytes).toBe(KEEPS_UP_BYTES);
    expect(permit.memory.fallBehind()).toBeTrue();
    expect(permit.memory.bytes).toBe(BEHIND_BYTES);
    permit.memory.catchUp();
    expect(permit.memory.bytes).toBe(KEEPS_UP_BYTES);
    permit.memory.fallBehind();
    permit.release();
    expect([permit.memory.bytes, ledger.inUse]).toEqual([0, 0]);
    permit.memory.giveBodyUp();
    expect(ledger.inUse).toBe(0);
  });

  it('of known length arrives faster than it is read, so its price is that of a reader who does not keep up', async () => {
    const { enter, client } = start();
    const permit = await enter('get', 'token');
    void permit.memory.reserveBody(priceOfStream(50_000), 50_000, client.signal);
    expect(permit.memory.bytes).toBe(100_000);
    permit.memory.catchUp();
    expect(permit.memory.bytes).toBe(KEEPS_UP_BYTES);
  });

  it('in slices has a slice more during a read, when memory is scarce only for a reader who has taken the last', async () => {
    const { enter, client, leave } = start();
    const permit = await enter('get', 'token');
    void permit.memory.reserveBody(priceOfSlices(1000), 1000, client.signal);
    expect(permit.memory.tryReserveRead(false)).toBeTrue();
    permit.memory.catchUp();
    expect(permit.memory.bytes).toBe(2500);
    permit.memory.onRead();
    permit.memory.onRead();
    expect(permit.memory.bytes).toBe(1500);
    leave(0, { share: 1 / 2 });
    expect(permit.memory.tryReserveRead(false)).toBeTrue();
    permit.memory.onRead();
    leave(-1, { share: 1 / 2 });
    expect(permit.memory.tryReserveRead(false)).toBeFalse();
    expect(permit.memory.tryReserveRead(true)).toBeTrue();
    permit.memory.onRead();
    // Orders, of which many may wait, do not keep it from who plays.
    leave(0, LADDER.order);
    expect(permit.memory.tryReserveRead(true)).toBeTrue();
    permit.memory.onRead();
    leave(999, LADDER.nextSlice);
    expect(permit.memory.tryReserveRead(true)).toBeFalse();
  });

  it('of a reader that stands still makes room before a call is refused', async () => {
    const { enter, begin, leave, streamToStoppedReader } = start();
    const record = await streamToStoppedReader('other');
    await pass(30_000);
    const permit = await enter('get', 'own');
    leave(0, LADDER.user);
    expect(record.cutOff).toBeUndefined();
    expect(await begin(permit)).toBeUndefined();
    expect(record.cutOff).toBe('room for others');
  });

  it('of a reader that stands still makes room for a user when not even the call fits, and not for a guest', async () => {
    const { enter, leave, streamToStoppedReader } = start();
    const record = await streamToStoppedReader();
    await pass(30_000);
    leave(0, LADDER.user);
    expect(await enter('public').catch((error) => error)).toEqual(refusal(503));
    expect(record.cutOff).toBeUndefined();
    await enter('get', 'own');
    expect(record.cutOff).toBe('room for others');
  });

  it.each([
    ['is made already', 10 * BEHIND_BYTES, LADDER.behind],
    ['is not made yet', UNKNOWN, LADDER.order],
  ])('of a reader that stands still makes room for a track that %s', async (_, length, rung) => {
    const { enter, leave, client, streamToStoppedReader } = start();
    const record = await streamToStoppedReader();
    const { memory } = await enter('generation', 'own');
    await pass(30_000);
    leave(0, rung);
    expect(await memory.admitTrack(length, client.signal)).toBeTrue();
    expect(record.cutOff).toBe('room for others');
  });

  it('is cut off when the kernel charges too much, two in a tick, because what that frees shows later', async () => {
    const { kernel, ledger, streamToStoppedReader } = start();
    const records = await Promise.all(['a', 'b', 'c'].map(streamToStoppedReader));
    await pass(30_000);
    kernel.charges = ledger.limit * LADDER.behind.share - ledger.charged() + BEHIND_BYTES;
    await pass(100);
    kernel.charges = 0;
    await pass(1000);
    expect(records.map(({ cutOff }) => cutOff)).toEqual(['room for others', 'room for others', undefined]);
  });

  it('whose reader is behind is cut off for what the kernel charges alone, and not for garbage', async () => {
    const { kernel, ledger, enter, client, leave } = start();
    const permit = await enter('generation', 'token');
    permit.memory.admitTrack(UNKNOWN, client.signal);
    const record = new RequestRecord(new Request('http://gateway.test'));
    const body = new ObservedBody({ rest: null }, record, permit.memory, {
      connection: undefined,
      onUpstreamEnd: () => {},
    });
    body.waitsFor = 'reader';
    leave(0, LADDER.behind);
    await pass(5000);
    expect(record.cutOff).toBeUndefined();
    kernel.charges = LIMIT_BYTES;
    using _gc = jest.spyOn(Bun, 'gc').mockImplementationOnce(() => {
      kernel.charges = 0;
    });
    await pass(1000);
    expect(record.cutOff).toBeUndefined();
    kernel.charges = LIMIT_BYTES;
    await pass(1100);
    expect(record.cutOff).toBe('no memory');
    expect(ledger.inUse).toBeGreaterThan(0);
  });
});

describe('a session', () => {
  it('has an eighth of the ledger when memory is scarce, of anything, and others are served', async () => {
    const { ledger, enter, begin, reserve, leave } = start();
    const permit = await enter('get', 'own');
    await reserve(permit, ledger.limit / 8 - CALL_BYTES);
    const [more, other] = [await enter('get', 'own'), await enter('get', 'other')];
    expect(await begin(more)).toBeUndefined();
    leave(0, { share: 1 / 2 });
    const beyond = await enter('get', 'own');
    expect(await begin(beyond, '/v1/balance')).toEqual(refusal(429));
    expect(await begin(other, '/v1/balance')).toBeUndefined();
  });

  it('beyond its share makes room by its own bodies alone', async () => {
    const { ledger, enter, begin, leave, reserve, streamToStoppedReader } = start();
    const [own, other] = await Promise.all(['own', 'other'].map(streamToStoppedReader));
    await reserve(await enter('change', 'own'), ledger.limit / 8 - BEHIND_BYTES - 2 * CALL_BYTES);
    await pass(30_000);
    leave(0, { share: 1 / 2 });
    const permit = await enter('get', 'own');
    expect(await begin(permit)).toBeUndefined();
    expect([own?.cutOff, other?.cutOff]).toEqual(['room for others', undefined]);
  });

  it('has what it wants while memory is not scarce', async () => {
    const { enter, begin } = start();
    for (let call = 0; call < 20; call++) expect(await begin(await enter('change', 'own'))).toBeUndefined();
    for (let call = 0; call < 70; call++)
      expect(await begin(await enter('get', 'own'), '/v1/balance')).toBeUndefined();
    // Also a generation whose reader pauses beside them.
    const { memory } = await enter('generation', 'own');
    memory.admitTrack(UNKNOWN, new AbortController().signal);
    expect(memory.fallBehind()).toBeTrue();
  });
});

it.each([
  ['have been large', [5_000_000]],
  ['are not known yet', []],
  ['have been small', Array(20).fill(100)],
])('changes whose responses %s do not hold all that they wait for', async (_, learned) => {
  const { admission, enter, client } = start();
  const endpoint = admission.endpoints.of('POST', '/v1/exports', CALLS.change.unknownBytes);
  for (const bytes of learned) endpoint.learn(bytes, 200);
  const begun: Permit[] = [];
  for (let user = 0; user < 160; user++) {
    const permit = await enter('change', `user-${user}`).catch(() => undefined);
    if (!permit || permit.memory.start(endpoint, client.signal)?.catch(() => {})) break;
    begun.push(permit);
  }
  let finished = 0;
  for (const { memory } of begun) memory.headArrived(5_000_000, 200);
  const check = await enter('read', 'somebody');
  check.release();
  for (const permit of begun) {
    const body = permit.memory.reserveBody(priceOfStream(5_000_000), 5_000_000, client.signal);
    void Promise.resolve(body).then(() => {
      finished++;
      permit.release();
    });
  }
  await pass(10_000);
  expect(begun.length).toBeWithin(20, 161);
  expect(finished).toBe(begun.length);
});

it('the bodies of sign-ins, which strangers send, keep out no order that is paid for', () => {
  const { admission, ledger } = start();
  ledger.take((ledger.limit * 13) / 16);
  const order = admission.orderBodies.open(0);
  const strangers = Array.from({ length: 2000 }, () => admission.signInBodies.open(0));
  admission.orderBodies.grow(order, 1000);
  expect(strangers.filter(({ bytes }) => bytes > 0).length).toBeWithin(100, 2000);
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
    for (const kind of refused) expect(() => admission.checkRoom(kind, 'token')).toThrow(refusal(429));
    for (const kind of admitted) admission.checkRoom(kind, 'token');
    admission.checkRoom('generation', 'other');
  });

  it('counts a call with its generation and its bytes for one session at a time, and forgets an idle one', async () => {
    const { admission, enter, reserve } = start({
      MAX_IN_FLIGHT_PER_SESSION: '2',
      MAX_GENERATIONS_PER_SESSION: '1',
    });
    const { perSession } = admission;
    const [generation, call] = [await enter('generation', 'a'), await enter('get', 'a')];
    await reserve(generation, 100);
    await reserve(call, 7);
    // It does not refuse itself when the upstream gives the same access token again.
    for (const token of ['b', 'b']) generation.renewed(token);
    expect(perSession.useOf('a', false)).toMatchObject({ calls: 1, generations: 0, bytes: CALL_BYTES + 7 });
    expect(perSession.useOf('b', false)).toMatchObject({ calls: 1, generations: 1, bytes: CALL_BYTES + 100 });
    const other = await enter('generation', 'a');
    expect(() => other.renewed('b')).toThrow(refusal(429));
    for (const each of [generation, call, other]) each.release();
    expect(perSession.size).toBe(0);
  });

  it('takes tokens for two sessions that differ only at their ends, as signed ones may', async () => {
    const { admission, enter } = start();
    for (const end of ['a', 'b']) await enter('get', 'x'.repeat(3000) + end);
    expect(admission.perSession.size).toBe(2);
  });
});
