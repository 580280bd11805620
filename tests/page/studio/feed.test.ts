import { describe, expect, it, mock } from 'bun:test';
import { createFeed, type FeedOptions } from '../../../src/demo/studio/feed.ts';
import { fakeTime, settle } from '../fake-time.ts';

const LOST = new Error('no response');

/** A feed whose responses the test gives, each to the oldest request without one; time stands still. */
function openFeed(options: Partial<FeedOptions<string>> = {}) {
  const advance = fakeTime();
  const requests: PromiseWithResolvers<string>[] = [];
  const events: string[] = [];
  const load = mock(() => {
    const request = Promise.withResolvers<string>();
    requests.push(request);
    return request.promise;
  });
  const feed = createFeed({
    load,
    show: (value) => void events.push(value),
    isUnsettled: (value) => value === 'unsettled',
    onFailure: (error) => void events.push(error === LOST ? 'failure' : 'error'),
    onRecovery: () => void events.push('recovery'),
    ...options,
  });
  const give = (value: string | Error, request = requests.shift()) => {
    if (!request) throw new Error('The feed has not asked');
    if (value instanceof Error) request.reject(value);
    else request.resolve(value);
    return settle();
  };
  return { feed, advance, requests, events, give, asked: () => load.mock.calls.length };
}

describe('a feed', () => {
  it('asks again every three seconds until what it has loaded is settled, however often it is refreshed', async () => {
    const { feed, advance, events, asked, give } = openFeed();
    feed.refresh();
    await advance(60_000);
    expect(asked()).toBe(1);
    await give('unsettled');
    feed.refresh();
    await give('unsettled');
    await advance(2_999);
    expect(asked()).toBe(2);
    await advance(1);
    expect(asked()).toBe(3);
    await give('settled');
    await advance(60_000);
    expect([events, asked()]).toEqual([['unsettled', 'unsettled', 'settled'], 3]);
  });

  it.each(['older', LOST])('ignores %p for a request that a newer one has overtaken', async (late) => {
    const { feed, advance, requests, events, asked, give } = openFeed();
    feed.refresh();
    feed.refresh();
    await give('newer', requests.pop());
    await give(late);
    await advance(60_000);
    expect([events, asked()]).toEqual([['newer'], 2]);
  });

  it('reports the first of several failures, retries every ten seconds, and reports the recovery', async () => {
    const { feed, advance, events, asked, give } = openFeed();
    feed.refresh();
    await give(LOST);
    await advance(9_999);
    expect(asked()).toBe(1);
    await advance(1);
    await give(LOST);
    await advance(10_000);
    expect(events).toEqual(['failure']);
    await give('settled');
    feed.refresh();
    await give(LOST);
    expect(events).toEqual(['failure', 'settled', 'recovery', 'failure']);
  });

  it('may be stopped by the function that it reports a failure to', async () => {
    const { feed, advance, asked, give } = openFeed({ onFailure: () => feed.stop() });
    feed.refresh();
    await give(LOST);
    await advance(60_000);
    expect(asked()).toBe(1);
  });

  it('asks no more after it was stopped, and has forgotten its failure', async () => {
    const { feed, advance, events, asked, give } = openFeed();
    feed.refresh();
    await give(LOST);
    feed.refresh();
    feed.stop();
    await give('late');
    await advance(60_000);
    expect(asked()).toBe(2);
    feed.refresh();
    await give('settled');
    expect(events).toEqual(['failure', 'settled']);
  });
});
