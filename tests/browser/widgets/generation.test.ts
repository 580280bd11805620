import { describe, expect, it } from 'bun:test';
import { GatewayRequestError } from '../../../src/client/gateway-request.ts';
import { beginGeneration, ORDER, TRACK } from './generation-stand-in.ts';
import { settle } from './page.ts';

const LOST = new GatewayRequestError('The connection failed.', { status: 0, retryIsSafe: false });
const REFUSED = new GatewayRequestError('No credits.', { status: 402, retryIsSafe: true });

describe('a generation', () => {
  it('is ordered as it is, with key and signal, and tells its progress', () => {
    const { generate, update, signal, takeLog } = beginGeneration();
    expect(generate.mock.calls).toEqual([[ORDER, { idempotencyKey: 'key', signal, onProgress: update }]]);
    expect(generate.mock.calls[0]?.[1]?.signal).toBe(signal);
    expect(takeLog()).toEqual([['progress', 'begin']]);
  });

  it('opens nothing before it has begun, and then at once', async () => {
    const { answer, takeLog } = beginGeneration();
    await settle();
    takeLog();
    await answer();
    expect(takeLog()).toEqual([['change'], ['live', 'audio/wav'], ['open', TRACK, '/live/1']]);
  });

  it('is heard piece by piece, and is complete with an outline of all pieces', async () => {
    const { answer, arrive, finish, outline, outcome, takeLog } = beginGeneration();
    await answer();
    takeLog();
    await arrive(1, 2);
    expect(takeLog()).toEqual([['add', [1, 2]]]);
    await arrive(3);
    await finish();
    expect(takeLog()).toEqual([['add', [3]], ['end'], ['complete', 'c1'], ['keep', 'c1', [1, 2, 3]]]);
    outline.resolve([0.5, 1]);
    expect(await outcome).toBe('done');
    expect(takeLog()).toEqual([['draw', 'c1', [0.5, 1]], ['progress', 'complete'], ['change']]);
  });

  it('is opened all the same where nothing can be played live', async () => {
    const { answer, arrive, finish, takeLog } = beginGeneration({ isLive: false });
    await answer();
    await arrive(1);
    await finish();
    const opened = ['open', TRACK, undefined];
    expect(takeLog().slice(2)).toEqual([
      ['live', 'audio/wav'],
      opened,
      ['complete', 'c1'],
      ['keep', 'c1', [1]],
    ]);
  });

  it('of which the upstream gives no id is received, and found in the library only', async () => {
    const { answer, arrive, finish, outcome, takeLog } = beginGeneration({ creationId: null });
    await answer();
    await arrive(1);
    await finish();
    expect(await outcome).toBe('done');
    expect(takeLog()).toEqual([['progress', 'begin'], ['change'], ['progress', 'complete'], ['change']]);
  });
});

describe('a generation that fails', () => {
  it('before it has begun opens nothing, and has no progress to show', async () => {
    const { refuse, outcome, takeLog } = beginGeneration();
    refuse(REFUSED);
    expect(await outcome).toBe('refused');
    expect(takeLog()).toEqual([
      ['progress', 'begin'],
      ['progress', 'hide'],
      ['failure', REFUSED, 'ordering'],
      ['change'],
    ]);
  });

  it.each([
    ['a lost connection', LOST],
    ['a mistake in the page', new TypeError('x is not a function')],
  ])('without a clear no may be made all the same: %s', async (_what, error) => {
    const { refuse, outcome } = beginGeneration();
    refuse(error);
    expect(await outcome).toBe('uncertain');
  });

  it('while it arrives ends its own track and no other', async () => {
    const { answer, arrive, fail, outcome, takeLog } = beginGeneration();
    await answer();
    await arrive(1);
    takeLog();
    await fail(LOST);
    expect(await outcome).toBe('uncertain');
    expect(takeLog()).toEqual([
      ['break'],
      ['break off', 'c1'],
      ['progress', 'broken'],
      ['failure', LOST, 'receiving'],
      ['change'],
    ]);
  });

  it('because a person has cancelled it is no failure, before and after it has begun', async () => {
    const early = beginGeneration();
    early.cancel();
    expect(await early.outcome).toBe('done');
    expect(early.takeLog()).toEqual([['progress', 'begin'], ['progress', 'cancelled'], ['change']]);

    const late = beginGeneration();
    await late.answer();
    late.takeLog();
    late.cancel();
    expect(await late.outcome).toBe('done');
    expect(late.takeLog()).toEqual([['break'], ['break off', 'c1'], ['progress', 'cancelled'], ['change']]);
  });
});
