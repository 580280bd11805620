import { expect, it, mock } from 'bun:test';
import { createAccountFeeds } from '../../../src/demo/studio/account-feeds.ts';
import { fakeTime, settle } from '../../client/fake-time.ts';

const SUMMARY = '/v1/billing/summary?month=2026-03';
const TOUCHED = ['/v1/activity', '/v1/billing/balance', SUMMARY, 'creations'];

it('An account is loaded at sign-in, again after a generation, and forgotten at the end of the session', async () => {
  const advance = fakeTime();
  const asked: string[] = [];
  let isLost = false;
  const respond = async (name: string) => {
    asked.push(name);
    if (isLost) throw new Error('lost');
    return name === 'creations' ? [{ id: 'c1', status: 'generating' }] : Object([{ id: 'music-1' }]);
  };
  const takeAsked = () => asked.splice(0).sort();
  const shown = new Map<string, unknown>();
  const show = (name: string) => (value: unknown) => void shown.set(name, value);
  const [confirmAccount, onFailure, onRecovery] = [mock(async () => true), mock(() => {}), mock(() => {})];
  const feeds = createAccountFeeds(
    { models: () => respond('models'), creations: () => respond('creations'), upstreamData: respond },
    {
      form: { showModels: show('models'), showBalance: show('credits') },
      library: { show: show('creations'), showFailure() {} },
      account: { showBalance: show('balance'), showActivity: show('activity'), showSummary: show('month') },
      ...{ confirmAccount, onFailure, onRecovery },
    },
  );

  feeds.begin();
  await settle();
  expect(takeAsked()).toEqual([...TOUCHED, 'models']);
  // Another account may have signed in before the responses.
  expect(confirmAccount).toHaveBeenCalledTimes(5);
  expect([shown.get('models'), shown.get('creations')]).toMatchObject([[{ id: 'music-1' }], [{ id: 'c1' }]]);
  // Again while a track is made, and after each failure, of which the first is reported.
  for (const [afterMs, fails] of [
    [3_000, true],
    [10_000, true],
    [10_000, false],
  ] as const) {
    isLost = fails;
    await advance(afterMs);
    expect(takeAsked()).toEqual(['creations']);
  }
  expect([onFailure.mock.calls.length, onRecovery.mock.calls.length]).toEqual([1, 1]);
  feeds.refreshAccount();
  expect(takeAsked()).toEqual(TOUCHED);
  feeds.refreshAll();
  expect(takeAsked()).toEqual([...TOUCHED, 'models']);
  feeds.end();
  await settle();
  feeds.refreshAccount();
  feeds.refreshAll();
  await advance(60_000);
  expect([takeAsked(), shown.size, new Set(shown.values())]).toEqual([[], 6, new Set([undefined])]);
});
