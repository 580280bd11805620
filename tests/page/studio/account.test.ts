import { describe, expect, it, mock } from 'bun:test';
import { createAccountFeeds } from '../../../src/demo/studio/account-feeds.ts';
import { createAccountPanel } from '../../../src/demo/studio/account-panel.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { fakeTime, NOW, settle } from '../fake-time.ts';
import { openPart, shownText } from './page.ts';

const SUMMARY = '/v1/billing/summary?month=2026-03';
const TOUCHED = ['/v1/activity', '/v1/billing/balance', SUMMARY, 'creations'];
const NOTHING = ['–', '–', '–', '–'];
const created_at = NOW.toISOString();

describe('what the page shows of an account', () => {
  it('is loaded at sign-in, again after a generation, and forgotten at the end of the session', async () => {
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
        { type: 'visibility', credits: 0 },
        ...['refund', 'fourth', 'fifth', 'seventh'].map((type) => ({ type })),
      ],
      [SUMMARY]: { generations: 2, music_length_ms: 90_000, credits_spent: 1_009 },
    };
    const respond = async (name: string): Promise<unknown> => {
      asked.push(name);
      return responses[name];
    };
    const form = { showModels: mock((_models: unknown) => {}), showBalance: mock((_credits: unknown) => {}) };
    const library = { show: mock((_creations: unknown) => {}), showFailure() {} };
    const account = createAccountPanel(root, { text });
    const confirmAccount = mock(async () => true);
    const feeds = createAccountFeeds(
      { models: () => respond('models'), creations: () => respond('creations'), upstreamData: respond },
      { form, library, account, confirmAccount, onFailure() {}, onRecovery() {} },
    );
    const figures = () => ['balance', 'tracks', 'music', 'spent'].map(shown);
    const activity = () => [...part(root, 'activity').children].map(shownText);
    const takeAsked = () => asked.splice(0).sort();

    expect(figures()).toEqual(NOTHING);
    feeds.begin();
    await settle();
    expect(takeAsked()).toEqual([...TOUCHED, 'models']);
    // Another account may have signed in before the responses.
    expect(confirmAccount).toHaveBeenCalledTimes(5);
    expect(form.showModels).toHaveBeenLastCalledWith([expect.objectContaining({ id: 'music-1' })]);
    expect(library.show).toHaveBeenLastCalledWith([expect.objectContaining({ id: 'c1' })]);
    expect(form.showBalance).toHaveBeenLastCalledWith(12_345);
    // The month is the one in UTC.
    expect(figures()).toEqual(['12,345', '2', '1:30', '1,009']);
    const [rain, signedIn] = ['Rain Mar 4, 2026, 5:06 AM 3 credits', 'Signed in Mar 4, 2026, 5:06 AM'];
    expect(activity()).toEqual([rain, signedIn, 'Visibility changed', 'refund', 'fourth', 'fifth']);
    expect(shown('no-activity')).toBe('');
    text.choose('sw');
    expect(activity()[1]).toBe('Kuingia 4 Mac 2026, 05:06');
    text.choose('en');

    Object.assign(responses, { '/v1/billing/balance': { balance: 0 }, '/v1/activity': [], [SUMMARY]: {} });
    responses['creations'] = [{ id: 'c2', status: 'generating' }];
    feeds.refreshAccount();
    expect(takeAsked()).toEqual(TOUCHED);
    await settle();
    expect(figures()).toEqual(['0', '0', '0:00', '0']);
    expect(shown('no-activity')).toBe('Nothing has happened yet.');
    responses['creations'] = [];
    await advance(60_000);
    expect(takeAsked()).toEqual(['creations']);

    feeds.refreshAccount();
    takeAsked();
    feeds.end();
    await settle();
    for (const show of [form.showModels, form.showBalance, library.show]) {
      expect(show).toHaveBeenLastCalledWith(undefined);
    }
    expect([figures(), activity()]).toEqual([NOTHING, []]);
    expect(shown('no-activity')).toBe('Loading your activity…');
    feeds.refreshAccount();
    await advance(60_000);
    expect(takeAsked()).toEqual([]);
  });
});
