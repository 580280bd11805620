import { describe, expect, it, mock } from 'bun:test';
import { createAccountFeeds } from '../../../src/demo/studio/account-feeds.ts';
import { fakeTime, settle } from './page.ts';

const CREATION = { id: 'c1', prompt: 'Rain', music_length_ms: 30_000, status: 'ready' };

/** The feeds with a client that answers at once, unless `failing` names what is asked for. */
function openFeeds() {
  const asked: string[] = [];
  const failing = new Set<string>();
  const answers: Record<string, unknown> = {
    models: [{ id: 'music-1' }],
    creations: [CREATION],
    '/v1/billing/balance': { balance: 12 },
    '/v1/activity': [{ type: 'generation' }],
    '/v1/billing/summary?month=2026-03': { generations: 2 },
  };
  const answer = async (name: string): Promise<unknown> => {
    asked.push(name);
    if (failing.has(name)) throw new Error(`no ${name}`);
    return answers[name];
  };
  const client = {
    models: () => answer('models'),
    creations: () => answer('creations'),
    upstreamData: (path: string) => answer(path),
  };
  const parts = {
    form: { showModels: mock((_models: unknown) => {}) },
    library: { show: mock((_creations: unknown) => {}), markPlaying: () => {} },
    account: {
      showBalance: mock((_credits: unknown) => {}),
      showActivity: mock((_activity: unknown) => {}),
      showSummary: mock((_summary: unknown) => {}),
    },
  };
  const events = { onFailure: mock((_error: unknown) => {}), onRecovery: mock(() => {}) };
  const feeds = createAccountFeeds(client, { ...parts, ...events });
  const takeAsked = () => asked.splice(0).sort();
  return { feeds, answers, failing, takeAsked, ...parts, ...events };
}

const TOUCHED = ['/v1/activity', '/v1/billing/balance', '/v1/billing/summary?month=2026-03', 'creations'];

describe('what the page shows of an account', () => {
  it('is all asked for at once after signing in, the summary of the month in UTC', async () => {
    fakeTime();
    const { feeds, takeAsked, form, library, account } = openFeeds();
    feeds.begin();
    expect(takeAsked()).toEqual([...TOUCHED, 'models']);
    await settle();
    expect(form.showModels).toHaveBeenLastCalledWith([expect.objectContaining({ id: 'music-1' })]);
    expect(library.show).toHaveBeenLastCalledWith([expect.objectContaining({ id: 'c1', seconds: 30 })]);
    expect(account.showBalance).toHaveBeenLastCalledWith(12);
    expect(account.showActivity).toHaveBeenLastCalledWith([expect.objectContaining({ type: 'generation' })]);
    expect(account.showSummary).toHaveBeenLastCalledWith({ tracks: 2, seconds: 0, credits: 0 });
  });

  it('is asked for again after a generation, but for the models', async () => {
    fakeTime();
    const { feeds, takeAsked } = openFeeds();
    feeds.begin();
    await settle();
    takeAsked();
    feeds.refreshAccount();
    expect(takeAsked()).toEqual(TOUCHED);
  });

  it('looks after a track that is being made until it is ready, and after nothing else', async () => {
    const advance = fakeTime();
    const { feeds, answers, takeAsked } = openFeeds();
    answers['creations'] = [CREATION, { ...CREATION, id: 'c2', status: 'generating' }];
    feeds.begin();
    await settle();
    takeAsked();
    await advance(3_000);
    expect(takeAsked()).toEqual(['creations']);
    answers['creations'] = [CREATION];
    await advance(3_000);
    takeAsked();
    await advance(60_000);
    expect(takeAsked()).toEqual([]);
  });

  it('tells what fails and what recovers, each by itself', async () => {
    const advance = fakeTime();
    const { feeds, failing, takeAsked, onFailure, onRecovery } = openFeeds();
    failing.add('models');
    feeds.begin();
    await settle();
    takeAsked();
    expect(onFailure.mock.calls).toEqual([[new Error('no models')]]);
    failing.clear();
    await advance(10_000);
    expect(takeAsked()).toEqual(['models']);
    expect(onRecovery).toHaveBeenCalledTimes(1);
  });

  it('is forgotten at the end of the session, and not asked for any more', async () => {
    const advance = fakeTime();
    const { feeds, failing, takeAsked, form, library, account } = openFeeds();
    failing.add('creations');
    feeds.begin();
    await settle();
    takeAsked();
    feeds.end();
    expect(form.showModels).toHaveBeenLastCalledWith(undefined);
    expect(library.show).toHaveBeenLastCalledWith(undefined);
    expect(account.showBalance).toHaveBeenLastCalledWith(undefined);
    expect(account.showActivity).toHaveBeenLastCalledWith([]);
    expect(account.showSummary).toHaveBeenLastCalledWith(undefined);
    feeds.refreshAccount();
    await advance(60_000);
    expect(takeAsked()).toEqual([]);
  });

  it('does not show the next person an answer to the last one', async () => {
    const { feeds, library, account } = openFeeds();
    feeds.begin();
    feeds.end();
    await settle();
    expect(library.show).toHaveBeenLastCalledWith(undefined);
    expect(account.showBalance).toHaveBeenLastCalledWith(undefined);
  });
});
