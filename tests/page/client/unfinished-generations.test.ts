import { describe, expect, it, setSystemTime } from 'bun:test';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { UnfinishedGenerations } from '../../../src/client/unfinished-generations.ts';
import { failWith, openPage, rejection, respondWith } from './page.ts';
import { openRecoveryWorld, ORDER as TRACK, undisturbedHash } from './recovery-world.ts';

const MUSIC = 'POST /v1/music';
const ORDER = { model: 'm', prompt: 'rain on a tin roof', music_length_ms: 3_000 };
const KEY = { idempotencyKey: 'a-key' };

function openStorage() {
  const { sessionStorage: storage } = openPage();
  return { storage, unfinished: new UnfinishedGenerations('ada', storage) };
}

describe('unfinished generations', () => {
  it('are kept with the id of their creation as soon as it is known, and forgotten when they are complete', async () => {
    const { unfinished } = openStorage();
    const atSending: unknown[] = [];
    const client = createGatewayClient({
      baseUrl: 'http://gateway.test',
      async fetch() {
        atSending.push(...unfinished.list());
        return new Response('audio', { headers: { 'x-music-creation-id': 'c-7' } });
      },
    });
    const form = { ...ORDER, note: 'private' };
    const { body } = await client.generate(form, { ...KEY, unfinished });
    expect(atSending).toEqual([{ order: ORDER, ...KEY, creationId: null }]);
    expect(unfinished.list()).toEqual([{ order: ORDER, ...KEY, creationId: 'c-7' }]);
    await new Response(body).text();
    expect(unfinished.list()).toEqual([]);
  });

  it.each([
    [402, []],
    [500, ['a-key']],
  ])('of an order that got %d are these: %p', async (status, kept) => {
    const { unfinished } = openStorage();
    const refused = respondWith(null, { status }).generate(ORDER, { ...KEY, unfinished });
    expect(await rejection(refused)).toMatchObject({ status });
    expect(unfinished.list().map(({ idempotencyKey }) => idempotencyKey)).toEqual(kept);
  });

  it.each([401, 402, 429])(
    'that are taken up may exist although the repeated order gets %d',
    async (status) => {
      const { unfinished } = openStorage();
      unfinished.keep({ order: ORDER, ...KEY, creationId: null });
      const error = await rejection(respondWith(null, { status }).generate(ORDER, { ...KEY, unfinished }));
      expect(error).toMatchObject({ name: 'RecoveryError', code: 'refused', ...KEY, cause: { status } });
      expect(unfinished.list()).toHaveLength(1);
    },
  );

  it('are forgotten when the user does not want them any more', async () => {
    const { unfinished } = openStorage();
    const { body } = await respondWith('audio').generate(ORDER, { unfinished });
    expect(unfinished.list()).toHaveLength(1);
    await body.cancel();
    expect(unfinished.list()).toEqual([]);
    const signal = AbortSignal.abort();
    await rejection(failWith('aborted').generate(ORDER, { unfinished, signal }));
    expect(unfinished.list()).toEqual([]);
  });

  it.each([
    ['from the beginning', 0, []],
    ['once the order is sent', 1, ['a-key']],
  ])('do not end a generation when the storage is full %s', async (_, room, keptMeanwhile) => {
    const { sessionStorage } = openPage();
    let stored = 0;
    const storage = {
      getItem: (key: string) => sessionStorage.getItem(key),
      setItem(key: string, value: string) {
        if (stored === room) throw new DOMException('The quota has been exceeded.', 'QuotaExceededError');
        stored += 1;
        sessionStorage.setItem(key, value);
      },
      removeItem: (key: string) => sessionStorage.removeItem(key),
    };
    const unfinished = new UnfinishedGenerations('ada', storage);
    const { body } = await respondWith('audio').generate(ORDER, { ...KEY, unfinished });
    expect(unfinished.list().map(({ idempotencyKey }) => idempotencyKey)).toEqual(keptMeanwhile);
    expect(await new Response(body).text()).toBe('audio');
    expect(unfinished.list()).toEqual([]);
  });

  it('are not taken up after an hour, nor from a time that is still to come', () => {
    const { unfinished } = openStorage();
    const minutes = (count: number) => setSystemTime(new Date(Date.UTC(2026, 0, 1, 12, count)));
    try {
      for (const [now, creationId] of [
        [0, null],
        [50, 'c-7'],
      ] as const) {
        minutes(now);
        unfinished.keep({ order: ORDER, ...KEY, creationId });
      }
      const kept = [59, 60, -59, -60].map((now) => {
        minutes(now);
        return unfinished.list().length;
      });
      expect(kept).toEqual([1, 0, 1, 0]);
    } finally {
      setSystemTime();
    }
  });

  it('belong to one account, and several may be under way', () => {
    const { storage, unfinished } = openStorage();
    for (const idempotencyKey of ['1', '2'])
      unfinished.keep({ order: ORDER, idempotencyKey, creationId: null });
    expect(new UnfinishedGenerations('grace', storage).list()).toEqual([]);
    unfinished.forget('1');
    expect(unfinished.list().map(({ idempotencyKey }) => idempotencyKey)).toEqual(['2']);
    unfinished.forget('2');
    expect(storage.length).toBe(0);
    storage.setItem('music-gateway.generations.ada', '{');
    expect(unfinished.list()).toEqual([]);
  });

  it('are taken up after a reload, and paid for once', async () => {
    await using world = await openRecoveryWorld();
    const { unfinished } = openStorage();
    const accepted = Promise.withResolvers<void>();
    const order = world.gate.replace(MUSIC, async (forward) => {
      await forward();
      accepted.resolve();
      return new Promise<Response>(() => {});
    });
    // What a reload would end; the test ends it last, because an abort forgets the order.
    const abort = new AbortController();
    const { signal } = abort;
    const lost = rejection(world.client.generate(TRACK, { unfinished, signal }));
    await accepted.promise;
    order.giveBack();

    const [kept] = unfinished.list();
    expect(kept).toMatchObject({ order: TRACK, creationId: null });
    const idempotencyKey = kept?.idempotencyKey ?? '';
    const { body } = await world.client.generate(TRACK, { unfinished, idempotencyKey });
    const audio = await new Response(body).bytes();
    expect(new Bun.CryptoHasher('sha256').update(audio).digest('hex')).toBe(undisturbedHash());
    expect(unfinished.list()).toEqual([]);
    expect(world.gate.idempotencyKeys).toEqual([idempotencyKey, idempotencyKey]);
    expect(await world.account()).toEqual({ creations: 1, credits: 10 });
    abort.abort();
    await lost;
  });
});
