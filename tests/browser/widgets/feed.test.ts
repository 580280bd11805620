import { describe, expect, it, mock } from 'bun:test';
import { createFeed, type FeedOptions } from '../../../src/demo/studio/feed.ts';
import { fakeTime, settle } from './page.ts';

/** A feed whose answers the test gives, each to the oldest question without one. */
function openFeed(options: Partial<FeedOptions<string>> = {}) {
  const questions: PromiseWithResolvers<string>[] = [];
  const shown: string[] = [];
  const onFailure = mock((_error: unknown) => {});
  const onRecovery = mock(() => {});
  const asked = mock(() => {
    const question = Promise.withResolvers<string>();
    questions.push(question);
    return question.promise;
  });
  const feed = createFeed({
    load: asked,
    show: (value) => void shown.push(value),
    isUnsettled: (value) => value === 'unsettled',
    onFailure,
    onRecovery,
    ...options,
  });
  const take = () => {
    const question = questions.shift();
    if (!question) throw new Error('The feed has not asked');
    return question;
  };
  return {
    feed,
    shown,
    asked,
    onFailure,
    onRecovery,
    take,
    answer: (value: string) => {
      take().resolve(value);
      return settle();
    },
    fail: (error: unknown = new Error('no answer')) => {
      take().reject(error);
      return settle();
    },
  };
}

describe('a feed', () => {
  it('shows what it has loaded, and leaves it at that', async () => {
    const advance = fakeTime();
    const { feed, shown, asked, answer } = openFeed();
    feed.refresh();
    await answer('settled');
    expect(shown).toEqual(['settled']);
    await advance(60_000);
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it('looks again every three seconds as long as what it has will change by itself', async () => {
    const advance = fakeTime();
    const { feed, shown, asked, answer } = openFeed();
    feed.refresh();
    await answer('unsettled');
    await advance(2_999);
    expect(asked).toHaveBeenCalledTimes(1);
    await advance(1);
    expect(asked).toHaveBeenCalledTimes(2);
    await answer('unsettled');
    await advance(3_000);
    await answer('settled');
    await advance(60_000);
    expect(shown).toEqual(['unsettled', 'unsettled', 'settled']);
    expect(asked).toHaveBeenCalledTimes(3);
  });

  it('does not look again before an answer has come', async () => {
    const advance = fakeTime();
    const { feed, asked } = openFeed();
    feed.refresh();
    await advance(60_000);
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it('shows the newest answer, in whatever order they come', async () => {
    const { feed, shown, take } = openFeed();
    feed.refresh();
    feed.refresh();
    const [older, newer] = [take(), take()];
    newer.resolve('newer');
    await settle();
    older.resolve('older');
    await settle();
    expect(shown).toEqual(['newer']);
  });

  it('says nothing of a failure that a newer question has overtaken', async () => {
    const advance = fakeTime();
    const { feed, asked, onFailure, fail, answer } = openFeed();
    feed.refresh();
    feed.refresh();
    await fail();
    await answer('settled');
    await advance(60_000);
    expect(onFailure).not.toHaveBeenCalled();
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it('has one timer, however often it is asked', async () => {
    const advance = fakeTime();
    const { feed, asked, answer } = openFeed();
    feed.refresh();
    await answer('unsettled');
    feed.refresh();
    await answer('unsettled');
    await advance(3_000);
    expect(asked).toHaveBeenCalledTimes(3);
  });
});

describe('a feed that fails', () => {
  it('tells so once, tries again every ten seconds, and tells when it works again', async () => {
    const advance = fakeTime();
    const { feed, shown, asked, onFailure, onRecovery, fail, answer } = openFeed();
    feed.refresh();
    const error = new Error('no answer');
    await fail(error);
    expect(onFailure).toHaveBeenCalledWith(error);
    await advance(9_999);
    expect(asked).toHaveBeenCalledTimes(1);
    await advance(1);
    expect(asked).toHaveBeenCalledTimes(2);
    await fail();
    await advance(10_000);
    expect(onFailure).toHaveBeenCalledTimes(1);
    expect(onRecovery).not.toHaveBeenCalled();
    await answer('settled');
    expect(onRecovery).toHaveBeenCalledTimes(1);
    expect(shown).toEqual(['settled']);
  });

  it('tells so again after it has worked in between, and tells of no recovery without a failure', async () => {
    const { feed, onFailure, onRecovery, fail, answer } = openFeed();
    feed.refresh();
    await answer('settled');
    expect(onRecovery).not.toHaveBeenCalled();
    feed.refresh();
    await fail();
    feed.refresh();
    await answer('settled');
    feed.refresh();
    await fail();
    expect(onFailure).toHaveBeenCalledTimes(2);
    expect(onRecovery).toHaveBeenCalledTimes(1);
  });

  it('may be stopped by whom it tells', async () => {
    const advance = fakeTime();
    const { feed, asked, fail } = openFeed({ onFailure: () => feed.stop() });
    feed.refresh();
    await fail();
    await advance(60_000);
    expect(asked).toHaveBeenCalledTimes(1);
  });
});

describe('a feed that is stopped', () => {
  it('shows no answer that was under way, and asks no more', async () => {
    const advance = fakeTime();
    const { feed, shown, asked, answer } = openFeed();
    feed.refresh();
    await answer('unsettled');
    feed.refresh();
    feed.stop();
    await answer('late');
    await advance(60_000);
    expect(shown).toEqual(['unsettled']);
    expect(asked).toHaveBeenCalledTimes(2);
  });

  it('has forgotten its failure: begun again, it tells of no recovery', async () => {
    const { feed, onRecovery, fail, answer } = openFeed();
    feed.refresh();
    await fail();
    feed.stop();
    feed.refresh();
    await answer('settled');
    expect(onRecovery).not.toHaveBeenCalled();
  });
});
