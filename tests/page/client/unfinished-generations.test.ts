import { describe, expect, it, onTestFinished, setSystemTime } from 'bun:test';
import { UnfinishedGenerations } from '../../../src/client/unfinished-generations.ts';
import { fastForward } from '../fake-time.ts';
import { ORDER, type Respond, receive, rejection, stubGateway } from './gateway-stub.ts';
import { openPage } from './page.ts';
import { begun, TRACK } from './track.ts';

const KEY = { idempotencyKey: 'a-key' };
const KEPT = { order: ORDER, ...KEY, creationId: null };

function openStorage() {
  const { sessionStorage: storage } = openPage();
  const unfinished = new UnfinishedGenerations('ada', storage);
  return { storage, unfinished, keys: () => unfinished.list().map(({ idempotencyKey }) => idempotencyKey) };
}

describe('unfinished generations', () => {
  it('are kept with the id of their creation as soon as it is known, and forgotten when they are complete', async () => {
    const { unfinished } = openStorage();
    const atSending: unknown[] = [];
    const { client } = stubGateway([
      (init) => {
        atSending.push(...unfinished.list());
        return begun(TRACK.length, 'ends')(init);
      },
    ]);
    const form = { ...ORDER, note: 'private' };
    const { body } = await client.generate(form, { ...KEY, unfinished });
    expect(atSending).toEqual([KEPT]);
    expect(unfinished.list()).toEqual([{ ...KEPT, creationId: 'c-7' }]);
    await new Response(body).text();
    expect(unfinished.list()).toEqual([]);
  });

  it('are taken up after a reload under the same key, if the caller lets them be sent again', async () => {
    const { unfinished } = openStorage();
    const never: Respond = () => new Promise(() => {});
    const { client, sent } = stubGateway([never, begun(TRACK.length, 'ends')]);
    void client.generate(ORDER, { ...KEY, unfinished });
    const mine = new Error('another account is signed in');
    const beforeRepeat = () => Promise.reject(mine);
    const [kept] = unfinished.list();
    const options = { idempotencyKey: kept?.idempotencyKey ?? '', unfinished };
    expect(await rejection(client.generate(ORDER, { ...options, beforeRepeat }))).toBe(mine);
    expect(unfinished.list()).toEqual([KEPT]);
    expect((await receive(client, options)).audio).toEqual(TRACK);
    expect(unfinished.list()).toEqual([]);
    expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['a-key', 'a-key']);
  });

  it.each<[status: number, isTakenUp: boolean, error: object, isKept: boolean]>([
    [402, false, { name: 'GatewayRequestError', status: 402 }, false],
    [500, false, { name: 'GatewayRequestError', status: 500 }, true],
    [503, false, { name: 'RecoveryError', code: 'gave_up' }, true],
    [401, true, { name: 'RecoveryError', code: 'refused', ...KEY, cause: { status: 401 } }, true],
    [402, true, { name: 'RecoveryError', code: 'refused', ...KEY, cause: { status: 402 } }, true],
    [429, true, { name: 'RecoveryError', code: 'refused', ...KEY, cause: { status: 429 } }, true],
  ])(
    'after a %d to an order that was taken up, %p, end with %o, and are kept: %p',
    async (status, isTakenUp, error, isKept) => {
      const { unfinished, keys } = openStorage();
      if (isTakenUp) unfinished.keep(KEPT);
      const { client } = stubGateway([() => new Response(null, { status })]);
      expect(
        await rejection(fastForward(() => client.generate(ORDER, { ...KEY, unfinished }))),
      ).toMatchObject(error);
      expect(keys()).toEqual(isKept ? ['a-key'] : []);
    },
  );

  it.each<[string, (abort: AbortController) => Respond]>([
    [
      'before the headers',
      (abort) => () => {
        abort.abort();
        return Promise.reject('aborted');
      },
    ],
    [
      'in the audio',
      (abort) => (init) => {
        setTimeout(() => abort.abort(), 1_000);
        return begun(10, 'stalls')(init);
      },
    ],
  ])('are forgotten when the user aborts them %s', async (_, respond) => {
    const { unfinished, keys } = openStorage();
    const abort = new AbortController();
    const { client } = stubGateway([respond(abort)]);
    await rejection(fastForward(() => receive(client, { unfinished, signal: abort.signal })));
    expect(keys()).toEqual([]);
  });

  it('are forgotten when their audio is cancelled', async () => {
    const { unfinished, keys } = openStorage();
    const { body } = await stubGateway([begun(10)]).client.generate(ORDER, { ...KEY, unfinished });
    expect(keys()).toEqual(['a-key']);
    await body.cancel();
    expect(keys()).toEqual([]);
  });

  it.each([
    ['from the beginning', 0, []],
    ['once the order is sent', 1, ['a-key']],
  ])('do not end a generation when the storage is full %s', async (_, room, keptMeanwhile) => {
    const stored = new Map<string, string>();
    let writes = 0;
    const unfinished = new UnfinishedGenerations('ada', {
      getItem: (key) => stored.get(key) ?? null,
      setItem(key, value) {
        if (writes++ >= room) throw new DOMException('The quota has been exceeded.', 'QuotaExceededError');
        stored.set(key, value);
      },
      removeItem: (key) => void stored.delete(key),
    });
    const { client } = stubGateway([begun(TRACK.length, 'ends')]);
    const { body } = await client.generate(ORDER, { ...KEY, unfinished });
    expect(unfinished.list().map(({ idempotencyKey }) => idempotencyKey)).toEqual(keptMeanwhile);
    expect(await new Response(body).bytes()).toEqual(TRACK);
    expect(unfinished.list()).toEqual([]);
  });

  it('are not taken up an hour after they were kept first, nor from a time that is still to come', () => {
    const { unfinished, keys } = openStorage();
    onTestFinished(() => void setSystemTime());
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
    const { storage, unfinished, keys } = openStorage();
    for (const idempotencyKey of ['1', '2']) unfinished.keep({ ...KEPT, idempotencyKey });
    expect(new UnfinishedGenerations('grace', storage).list()).toEqual([]);
    unfinished.forget('1');
    expect(keys()).toEqual(['2']);
    unfinished.forget('2');
    expect(storage.length).toBe(0);
    storage.setItem('music-gateway.generations.ada', '{');
    expect(unfinished.list()).toEqual([]);
  });
});
