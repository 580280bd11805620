import { expect, it, mock } from 'bun:test';
import { createAccountFeeds } from '../../../src/demo/studio/account-feeds.ts';
import { createAccountPanel } from '../../../src/demo/studio/account-panel.ts';
import { fakeTime, settle } from '../../client/fake-time.ts';
import { openPart } from './page.ts';

const SUMMARY = '/v1/billing/summary?month=2026-03';
const TOUCHED = ['/v1/activity', '/v1/billing/balance', SUMMARY, 'creations'];

it('An account is loaded at sign-in, again after a generation, and forgotten at the end of the session', async () => {
  const advance = fakeTime();
  const { root, text, shown } = openPart('account');
  const asked: string[] = [];
  const responses: Record<string, unknown> = {
    models: [{ id: 'music-1' }],
    creations: [{ id: 'c1', status: 'generating' }],
    '/v1/billing/balance': { balance: 12 },
    '/v1/activity': [{ type: 'generation', description: 'Rain' }],
    [SUMMARY]: { generations: 2 },
  };
  const respond = async (name: string) => {
    asked.push(name);
    return Object(responses[name]);
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
  const figures = () => ['balance', 'tracks', 'activity'].map(shown);

  feeds.begin();
  await settle();
  expect(takeAsked()).toEqual([...TOUCHED, 'models']);
  // Another account may have signed in before the responses.
  expect(confirmAccount).toHaveBeenCalledTimes(5);
  expect(latest()).toMatchObject([[{ id: 'music-1' }], 12, [{ id: 'c1' }]]);
  expect(figures()).toEqual(['12', '2', 'Rain']);

  responses['creations'] = [];
  await advance(60_000);
  expect(takeAsked()).toEqual(['creations']);
  feeds.refreshAccount();
  expect(takeAsked()).toEqual(TOUCHED);
  feeds.refreshAll();
  expect(takeAsked()).toEqual([...TOUCHED, 'models']);
  feeds.end();
  await settle();
  feeds.refreshAccount();
  feeds.refreshAll();
  await advance(60_000);
  expect([takeAsked(), latest(), figures()]).toEqual([[], [undefined, undefined, undefined], ['–', '–', '']]);
});
