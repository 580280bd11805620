import { describe, expect, it, mock } from 'bun:test';
import { createFeed, type FeedOptions } from '../../../src/demo/studio/feed.ts';
import { fakeTime, settle } from './page.ts';

/** A feed whose responses the test gives, each to the oldest request without one; time stands still. */
function openFeed(options: Partial<FeedOptions<string>> = {}) {
  const advance = fakeTime();
  const requests: PromiseWithResolvers<string>[] = [];
  const shown: string[] = [];
  const events = { onFailure: mock((_error: unknown) => {}), onRecovery: mock(() => {}) };
  const load = mock(() => {
    const request = Promise.withResolvers<string>();
    requests.push(request);
    return request.promise;
  });
  const show = (value: string) => void shown.push(value);
  const feed = createFeed({
    load,
    show,
    isUnsettled: (value) => value === 'unsettled',
    ...events,
    ...options,
  });
  const give = (value: string | Error, request = requests.shift()) => {
    if (!request) throw new Error('The feed has not asked');
    if (value instanceof Error) request.reject(value);
    else request.resolve(value);
    return settle();
  };
  return { feed, advance, requests, shown, give, asked: () => load.mock.calls.length, ...events };
}

const LOST = new Error('no response');

describe('a feed', () => {
  it('asks again every three seconds until what it has loaded is settled', async () => {
    const { feed, advance, shown, asked, give } = openFeed();
    feed.refresh();
    await advance(60_000);
    expect(asked()).toBe(1);
    await give('unsettled');
    await advance(2_999);
    expect(asked()).toBe(1);
    await advance(1);
    await give('settled');
    await advance(60_000);
    expect([shown, asked()]).toEqual([['unsettled', 'settled'], 2]);
  });

  it.each(['older', LOST])(
    'ignores the response %p to a request that a newer one has overtaken',
    async (late) => {
      const { feed, advance, requests, shown, asked, onFailure, give } = openFeed();
      feed.refresh();
      feed.refresh();
      await give('newer', requests.pop());
      await give(late);
      await advance(60_000);
      expect([shown, asked(), onFailure.mock.calls]).toEqual([['newer'], 2, []]);
    },
  );

  it('has one timer, however often it is refreshed', async () => {
    const { feed, advance, asked, give } = openFeed();
    for (let time = 0; time < 2; time++) {
      feed.refresh();
      await give('unsettled');
    }
    await advance(3_000);
    expect(asked()).toBe(3);
  });

  it('reports the first of several failures, retries every ten seconds, and reports the recovery', async () => {
    const { feed, advance, shown, asked, onFailure, onRecovery, give } = openFeed();
    feed.refresh();
    await give(LOST);
    expect(onFailure.mock.calls).toEqual([[LOST]]);
    await advance(9_999);
    expect(asked()).toBe(1);
    await advance(1);
    await give(LOST);
    await advance(10_000);
    expect([onFailure.mock.calls.length, onRecovery.mock.calls.length]).toEqual([1, 0]);
    await give('settled');
    expect([onRecovery.mock.calls.length, shown]).toEqual([1, ['settled']]);
    feed.refresh();
    await give(LOST);
    expect(onFailure).toHaveBeenCalledTimes(2);
  });

  it('may be stopped by the function that it reports a failure to', async () => {
    const { feed, advance, asked, give } = openFeed({ onFailure: () => feed.stop() });
    feed.refresh();
    await give(LOST);
    await advance(60_000);
    expect(asked()).toBe(1);
  });

  it('asks no more after it was stopped, and has forgotten its failure', async () => {
    const { feed, advance, shown, asked, onRecovery, give } = openFeed();
    feed.refresh();
    await give(LOST);
    feed.refresh();
    feed.stop();
    await give('late');
    await advance(60_000);
    expect([shown, asked()]).toEqual([[], 2]);
    feed.refresh();
    await give('settled');
    expect([shown, onRecovery.mock.calls]).toEqual([['settled'], []]);
  });
});
