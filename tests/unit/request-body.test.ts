import { beforeEach, describe, expect, it, jest } from 'bun:test';
import { LADDER } from '../../src/gateway/admission/ladder.ts';
import { Ledger } from '../../src/gateway/admission/ledger.ts';
import { ARRIVING_BODY_BYTES } from '../../src/gateway/admission/prices.ts';
import { RequestBodies } from '../../src/gateway/admission/request-bodies.ts';
import { SessionLimit, type SessionUse } from '../../src/gateway/admission/session-limit.ts';
import { readBody } from '../../src/gateway/exchange/request-body.ts';
import { pass, settle } from '../support/passing-time.ts';

beforeEach(() => void jest.useFakeTimers());

const KiB = 1024;

/** Those of strangers, who may use so much: an eighth of the ledger. */
const bodiesWithin = (bytes: number) =>
  new RequestBodies(
    'order_body',
    { ledger: new Ledger(8 * bytes), perSession: newLimit() },
    LADDER.signInBody,
  );
const newLimit = () => new SessionLimit({ maxInFlightPerSession: 0, maxGenerationsPerSession: 0 });
const declared = (bytes: number) => ({ 'content-length': `${bytes}` });

/** Reads a body that arrives chunk by chunk, as the test sends it. */
function reading(
  headers: Record<string, string> = {},
  budget = bodiesWithin(64 * KiB * KiB),
  session?: SessionUse,
) {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  let status: number | undefined;
  const request = new Request('http://gateway.test', { method: 'POST', headers, body: readable });
  const body = readBody(request, budget, session).catch((error) => {
    status = error.status;
    return undefined;
  });
  return {
    body,
    budget,
    status: () => status,
    send: (bytes: number) => void writer.write(new Uint8Array(bytes)).catch(() => {}),
    end: () => void writer.close().catch(() => {}),
  };
}

// How much is accepted: integration/relay/request-bodies.test.ts. What drips: faults/request-limits.test.ts.
it.each([
  ['25 s for 2 MB declared of which little arrives', declared(2_000_000), 5, 0, 25, 408],
  ['a second more for each 16 KiB that have arrived', {}, 32 * KiB, 0, 27, 408],
  ['as long as a body keeps the pace', {}, 0, 16 * KiB, 60, undefined],
])('readBody() waits %s', async (_, headers, first, everySecond, seconds, expected) => {
  const { send, status, budget } = reading(headers);
  send(first);
  for (let second = 0; second < seconds; second++) {
    await pass(999);
    expect(status()).toBeUndefined();
    await pass(1);
    if (everySecond) send(everySecond);
  }
  expect(status()).toBe(expected);
  expect(budget.usedBytes === 0).toBe(expected === 408);
});

describe('the budget of readBody()', () => {
  // Of which two bodies fit into one, and not three.
  const UNIT = 80 * KiB;

  it.each([
    ['that are sent by strangers may have an eighth of the ledger', LADDER.signInBody, false, 8, 0],
    ['of one session may have an eighth when half of the ledger is in use', LADDER.order, true, 8, 4],
    ['of orders end with their rung', LADDER.order, true, 80, 80 * LADDER.order.share - 1],
    ['that are relayed end with theirs', LADDER.behind, true, 80, 80 * LADDER.behind.share - 1],
  ])(
    'bodies %s, and the oldest small one that still arrives makes room',
    async (_, rung, isUser, limit, inUse) => {
      const ledger = new Ledger(limit * UNIT);
      ledger.take(inUse * UNIT);
      const perSession = newLimit();
      const bodies = new RequestBodies('order_body', { ledger, perSession }, rung);
      const [own, another] = ['own', 'another'].map((token) =>
        isUser ? perSession.useOf(token, false) : undefined,
      );
      const isOfAll = inUse > limit / 2;
      const of = [own, isOfAll ? another : own, own];
      const other = isUser && !isOfAll ? reading({}, bodies, another) : undefined;
      const read = of.map((session) => reading({}, bodies, session));
      await settle();
      expect(read.map(({ status }) => status())).toEqual([503, undefined, undefined]);
      // Whoever sends less makes no room for one who sends more.
      expect(other?.status()).toBeUndefined();
    },
  );

  it.each([
    ['a large', 100 * KiB, 503],
    ['a small', KiB, undefined],
  ])(
    '%s relayed body does not begin where public playback is refused: %d bytes, %d',
    async (_, bytes, status) => {
      const ledger = new Ledger(80 * UNIT);
      ledger.take(ledger.limit * LADDER.guest.share - ARRIVING_BODY_BYTES);
      const perSession = newLimit();
      const bodies = new RequestBodies('relayed_body', { ledger, perSession }, LADDER.behind, LADDER.guest);
      const read = reading(declared(bytes), bodies, perSession.useOf('own', false));
      await settle();
      expect(read.status()).toBe(status);
    },
  );

  it('bodies of a user may have all that there is while memory is not scarce, and are forgotten', async () => {
    const perSession = newLimit();
    const bodies = new RequestBodies(
      'order_body',
      { ledger: new Ledger(8 * UNIT), perSession },
      LADDER.order,
    );
    const reservations = [0, 1, 2].map(() => bodies.open(0, perSession.useOf('own', false)));
    expect(perSession.useOf('own', false).bytes).toBe(3 * 32 * KiB);
    for (const each of reservations) bodies.release(each);
    expect(perSession.size).toBe(0);
    // One that is released again forgets nobody who has begun anew.
    bodies.open(0, perSession.useOf('own', false));
    for (const each of reservations) bodies.release(each);
    expect(perSession.size).toBe(1);
  });

  it.each([
    ['has room for a sign-in where sessions have', 47 / 48, [503, undefined]],
    ['has none where sessions have none', 1, [503, 503]],
  ])('%s, for the newest one', async (_, share, expected) => {
    const ledger = new Ledger(96 * 32 * KiB);
    ledger.take(share * ledger.limit);
    const bodies = new RequestBodies('order_body', { ledger, perSession: newLimit() }, LADDER.signInBody);
    const read = [reading({}, bodies), reading({}, bodies)];
    await settle();
    expect(read.map(({ status }) => status())).toEqual(expected);
  });

  it('refuses the oldest body when it grows itself, so that no more of it is read', () => {
    const budget = bodiesWithin(100 * KiB);
    const oldest = budget.open(0);
    budget.open(0);
    expect(() => budget.grow(oldest, 20 * KiB)).toThrow(expect.objectContaining({ status: 503 }));
  });

  it('drops the oldest body alone when that one grows, even where others take the room', async () => {
    const ledger = new Ledger(96 * 32 * KiB);
    const bodies = new RequestBodies('order_body', { ledger, perSession: newLimit() }, LADDER.order);
    const perUser = newLimit();
    const [oldest, younger] = ['a', 'b'].map((token) => bodies.open(0, perUser.useOf(token, false)));
    ledger.take(ledger.limit);
    if (!oldest || !younger) throw new Error('there are two');
    expect(() => bodies.grow(oldest, KiB)).toThrow(expect.objectContaining({ status: 503 }));
    expect(bodies.refused).toBe(1);
    bodies.release(younger);
    await expect(oldest.dropped).rejects.toMatchObject({ status: 503 });
  });

  it('has room for a whole body until it is disposed of, and never takes it for another', async () => {
    const whole = reading({}, bodiesWithin(80 * KiB));
    whole.send(10 * KiB);
    whole.end();
    const body = await whole.body;
    expect([whole.budget.usedBytes, jest.getTimerCount()]).toEqual([52 * KiB, 0]);
    const second = reading({}, whole.budget);
    await settle();
    expect([whole.status(), second.status()]).toEqual([undefined, 503]);
    body?.[Symbol.dispose]();
    expect(whole.budget.usedBytes).toBe(0);
  });

  it.each([
    ['by its declared length', declared(70_000), 0],
    ['by what has arrived', {}, 70_000],
  ])('refuses a large body for which there is no room, %s', async (_, headers, bytes) => {
    const small = reading({}, bodiesWithin(200 * KiB));
    small.send(62 * KiB);
    await settle();
    const large = reading(headers, small.budget);
    if (bytes) large.send(bytes);
    await settle();
    expect([small.status(), large.status()]).toEqual([undefined, 503]);
  });
});
