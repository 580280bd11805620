import { describe, expect, it, setSystemTime } from 'bun:test';
import { UnfinishedGenerations } from '../../../src/client/unfinished-generations.ts';
import { fastForward } from '../fake-time.ts';
import {
  lost,
  ORDER,
  openStorage,
  type Respond,
  receive,
  rejection,
  respond,
  stubGateway,
} from './gateway-stub.ts';
import { begun, TRACK } from './track.ts';

const KEY = { idempotencyKey: 'a-key' };
const KEPT = { order: ORDER, ...KEY, creationId: null };
const complete = begun(TRACK.length, 'ends');

/** What a tab keeps for Ada, whose storage has room for so many writes. */
function openUnfinished(room?: number) {
  const storage = openStorage(room);
  const unfinished = new UnfinishedGenerations('ada', storage);
  const keys = () => unfinished.list().map(({ idempotencyKey }) => idempotencyKey);
  return { storage, unfinished, keys };
}

describe('unfinished generations', () => {
  it.each([
    ['with the id of their creation once it is known', 100, [KEPT], [{ ...KEPT, creationId: 'c-7' }]],
    ['as far as the storage has room', 1, [KEPT], [KEPT]],
    ['nowhere when the storage is full', 0, [], []],
  ])('are kept %s, and forgotten when they are complete', async (_, room, whenSent, whenBegun) => {
    const { unfinished } = openUnfinished(room);
    const { client } = stubGateway((init) => {
      expect(unfinished.list()).toEqual(whenSent);
      return complete(init);
    });
    const { body } = await client.generate({ ...ORDER, ...{ note: 'private' } }, { ...KEY, unfinished });
    expect(unfinished.list()).toEqual(whenBegun);
    expect(await new Response(body).bytes()).toEqual(TRACK);
    expect(unfinished.list()).toEqual([]);
  });

  it('are taken up after a reload under the same key, if the caller lets them be sent again', async () => {
    const { unfinished } = openUnfinished();
    unfinished.keep(KEPT);
    const { client, sent } = stubGateway(complete);
    const options = { ...KEY, unfinished };
    const beforeRepeat = () => Promise.reject('another account');
    expect(await rejection(client.generate(ORDER, { ...options, beforeRepeat }))).toBe('another account');
    expect([unfinished.list(), sent]).toEqual([[KEPT], []]);
    expect((await receive(client, options)).audio).toEqual(TRACK);
    expect(unfinished.list()).toEqual([]);
    expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['a-key']);
  });

  it('of the upstream’s own form are sent to its path as they were first, repeated, and taken up there', async () => {
    const unfinished = new UnfinishedGenerations<{ lyrics: string; seed: number }>('ada', openStorage());
    const path = '/v1/music?form=own';
    const order = { lyrics: 'Rain, rain', seed: 7 };
    const breaks: Respond = (init) => {
      order.seed = 8;
      return lost(init);
    };
    const { client, sent } = stubGateway([breaks, respond(409), respond(402), complete]);
    const ordered = fastForward(() => client.generate(order, { ...KEY, unfinished, path }));
    expect(await rejection(ordered)).toMatchObject({ code: 'refused', ...KEY });
    const [kept] = unfinished.list();
    expect(kept).toEqual({ ...KEPT, order: { lyrics: 'Rain, rain', seed: 7 }, path });
    if (!kept) return;
    const { body } = await client.generate(kept.order, { ...KEY, unfinished, path: kept.path });
    expect([await new Response(body).bytes(), unfinished.list()]).toEqual([TRACK, []]);
    const requests = sent.map(({ call, headers, init }) => [call, headers.get('idempotency-key'), init.body]);
    const request = ['POST /api/upstream/v1/music?form=own', 'a-key', '{"lyrics":"Rain, rain","seed":7}'];
    expect(requests).toEqual([request, request, request, request]);
  });

  it.each([
    [402, false, 'GatewayRequestError', undefined, []],
    [500, false, 'GatewayRequestError', undefined, ['a-key']],
    [503, false, 'RecoveryError', 'gave_up', ['a-key']],
    [401, true, 'RecoveryError', 'refused', ['a-key']],
    [402, true, 'RecoveryError', 'refused', ['a-key']],
    [429, true, 'RecoveryError', 'refused', ['a-key']],
  ])('after a %d, taken up: %p, fail with %s %s, and these are kept: %j', async (...row) => {
    const [status, isTakenUp, name, code, kept] = row;
    const { unfinished, keys } = openUnfinished();
    if (isTakenUp) unfinished.keep(KEPT);
    const { client } = stubGateway(respond(status));
    const error = await rejection(fastForward(() => client.generate(ORDER, { ...KEY, unfinished })));
    expect(error).toMatchObject({ name, ...(code && { code, ...KEY, cause: { status } }) });
    expect(keys()).toEqual(kept);
  });

  it('are forgotten when the user aborts the order or the audio, or cancels it', async () => {
    const { unfinished, keys } = openUnfinished();
    const abort = new AbortController();
    const options = { ...KEY, unfinished, signal: abort.signal };
    const { client } = stubGateway(begun(10, 'stalls'));
    const [first, second] = [await client.generate(ORDER, options), await client.generate(ORDER, options)];
    expect(keys()).toEqual(['a-key']);
    await first.body.cancel();
    expect(keys()).toEqual([]);
    unfinished.keep(KEPT);
    const read = rejection(new Response(second.body).bytes());
    abort.abort();
    await read;
    expect(keys()).toEqual([]);
    await rejection(stubGateway([]).client.generate(ORDER, options));
    expect(keys()).toEqual([]);
  });

  it('are taken up once for all that do so at the same time, as in StrictMode, and again after a failure', async () => {
    const { storage, unfinished } = openUnfinished();
    for (const idempotencyKey of ['1', '2']) unfinished.keep({ ...KEPT, idempotencyKey });
    const outcome = Promise.withResolvers<void>();
    const worked: string[] = [];
    const work = async ({ idempotencyKey }: { idempotencyKey: string }) => {
      worked.push(idempotencyKey);
      await outcome.promise;
      return `c-${idempotencyKey}`;
    };
    const all = [unfinished, new UnfinishedGenerations('ada', storage)].map((each) => each.takeUp(work));
    const ofAnother = new UnfinishedGenerations('grace', storage).takeUp(work);
    outcome.reject('offline');
    expect(await Promise.all(all.map(rejection))).toEqual(['offline', 'offline']);
    expect([worked, await ofAnother]).toEqual([['1', '2'], []]);
    expect(await unfinished.takeUp(async ({ idempotencyKey }) => `c-${idempotencyKey}`)).toEqual([
      'c-1',
      'c-2',
    ]);
  });

  it('are not taken up an hour after they were kept first, nor from a time that is still to come', () => {
    const { unfinished, keys } = openUnfinished();
    const atMinute = (minute: number) => setSystemTime(new Date(Date.UTC(2026, 0, 1, 12, minute)));
    atMinute(0);
    unfinished.keep(KEPT);
    atMinute(50);
    unfinished.keep({ ...KEPT, creationId: 'c-7' });
    const kept = [59, 60, -59, -60].map((minute) => {
      atMinute(minute);
      return keys().length;
    });
    expect(kept).toEqual([1, 0, 1, 0]);
  });

  it('belong to one account, and several may be under way', () => {
    const { storage, unfinished, keys } = openUnfinished();
    for (const idempotencyKey of ['1', '2']) unfinished.keep({ ...KEPT, idempotencyKey });
    expect(new UnfinishedGenerations('grace', storage).list()).toEqual([]);
    unfinished.forget('1');
    expect(keys()).toEqual(['2']);
    unfinished.forget('2');
    expect(storage.stored.size).toBe(0);
    storage.setItem('music-gateway.generations.ada', '{');
    expect(unfinished.list()).toEqual([]);
  });
});
