import { expect, it, mock } from 'bun:test';
import { createAccountFeeds } from '../../../src/demo/studio/account-feeds.ts';
import { createAccountPanel } from '../../../src/demo/studio/account-panel.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { fakeTime, NOW, settle } from '../../client/fake-time.ts';
import { openPart, shownText } from './page.ts';

const SUMMARY = '/v1/billing/summary?month=2026-03';
const TOUCHED = ['/v1/activity', '/v1/billing/balance', SUMMARY, 'creations'];
const NOTHING = ['–', '–', '–', '–', 'Loading your activity…'];
const created_at = NOW.toISOString();

it('An account is loaded at sign-in, again after a generation, and forgotten at the end of the session', async () => {
  const advance = fakeTime();
  const { root, text, shown } = openPart('account');
  const asked: string[] = [];
  const responses: Record<string, unknown> = {
    models: [{ id: 'music-1' }],
    creations: [{ id: 'c1' }],
    '/v1/billing/balance': { balance: 12_345 },
    '/v1/activity': [
      { type: 'generation', description: 'Rain', credits: 3, created_at },
      { type: 'sign_in', description: 'Signed in at 1', created_at },
      { type: 'visibility', description: 'Rain', credits: 0 },
      { type: 'deletion', description: 'Rain', credits: 0 },
      ...['refund', 'fifth', 'seventh'].map((type) => ({ type })),
    ],
    [SUMMARY]: { generations: 2, music_length_ms: 90_000, credits_spent: 1_009 },
  };
  const respond = async (name: string) => {
    asked.push(name);
    return JSON.parse(JSON.stringify(responses[name]));
  };
  const takeAsked = () => asked.splice(0).sort();
  const [showModels, showBalance] = [mock((_models: unknown) => {}), mock((_credits: unknown) => {})];
  const library = { show: mock((_creations: unknown) => {}), showFailure() {} };
  const confirmAccount = mock(async () => true);
  const feeds = createAccountFeeds(
    { models: () => respond('models'), creations: () => respond('creations'), upstreamData: respond },
    {
      ...{ library, account: createAccountPanel(root, { text }), form: { showModels, showBalance } },
      ...{ confirmAccount, onFailure() {}, onRecovery() {} },
    },
  );
  const latest = () => [showModels, showBalance, library.show].map(({ mock }) => mock.lastCall?.[0]);
  const figures = () => ['balance', 'tracks', 'music', 'spent', 'no-activity'].map(shown);
  const activity = () => [...part(root, 'activity').children].map(shownText);

  feeds.begin();
  await settle();
  expect(takeAsked()).toEqual([...TOUCHED, 'models']);
  // Another account may have signed in before the responses.
  expect(confirmAccount).toHaveBeenCalledTimes(5);
  expect(latest()).toMatchObject([[{ id: 'music-1' }], 12_345, [{ id: 'c1' }]]);
  // The month is the one in UTC.
  expect(figures()).toEqual(['12,345', '2', '1:30', '1,009', '']);
  const [rain, signedIn] = ['Rain Mar 4, 2026, 5:06 AM 3 credits', 'Signed in Mar 4, 2026, 5:06 AM'];
  const changed = ['Visibility changed: Rain', 'Deleted: Rain'];
  expect(activity()).toEqual([rain, signedIn, ...changed, 'refund', 'fifth']);

  Object.assign(responses, { '/v1/billing/balance': { balance: 0 }, '/v1/activity': [], [SUMMARY]: {} });
  responses['creations'] = [{ id: 'c2', status: 'generating' }];
  feeds.refreshAccount();
  expect(takeAsked()).toEqual(TOUCHED);
  await settle();
  expect(figures()).toEqual(['0', '0', '0:00', '0', 'Nothing has happened yet.']);
  responses['creations'] = [];
  await advance(60_000);
  expect(takeAsked()).toEqual(['creations']);

  feeds.refreshAll();
  expect(takeAsked()).toEqual([...TOUCHED, 'models']);
  feeds.end();
  await settle();
  feeds.refreshAccount();
  feeds.refreshAll();
  await advance(60_000);
  expect([takeAsked(), latest(), figures()]).toEqual([[], [undefined, undefined, undefined], NOTHING]);
});
