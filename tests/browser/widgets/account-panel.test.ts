import { describe, expect, it } from 'bun:test';
import { createAccountPanel } from '../../../src/demo/studio/account-panel.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import type { Activity } from '../../../src/demo/studio/records.ts';
import { openPage, shownText } from './page.ts';

const AT = new Date('2026-03-04T05:06:07Z');

function activity(changes: Partial<Activity> = {}): Activity {
  return { type: 'generation', description: 'Rain', credits: 3, at: AT, ...changes };
}

function openPanel() {
  const { document, text } = openPage();
  const root = part(document, 'account');
  const items = () =>
    [...part(root, 'activity').children].map((item) => item.textContent.trim().replace(/\s+/g, ' '));
  const figures = () => ['balance', 'tracks', 'music', 'spent'].map((name) => part(root, name).textContent);
  return { root, text, items, figures, account: createAccountPanel(root, { text }) };
}

describe('the account', () => {
  it('has no figures until they are known', () => {
    expect(openPanel().figures()).toEqual(['–', '–', '–', '–']);
  });

  it('shows the balance, which may be 0, and forgets it', () => {
    const { account, figures } = openPanel();
    account.showBalance(12_345);
    expect(figures()[0]).toBe('12,345');
    account.showBalance(0);
    expect(figures()[0]).toBe('0');
    account.showBalance(undefined);
    expect(figures()[0]).toBe('–');
  });

  it('shows the month, which may be empty, and forgets it', () => {
    const { account, figures } = openPanel();
    account.showSummary({ tracks: 2, seconds: 90, credits: 1_009 });
    expect(figures().slice(1)).toEqual(['2', '1:30', '1,009']);
    account.showSummary({ tracks: 0, seconds: 0, credits: 0 });
    expect(figures().slice(1)).toEqual(['0', '0:00', '0']);
    account.showSummary(undefined);
    expect(figures().slice(1)).toEqual(['–', '–', '–']);
  });

  it('shows what happened lately, with time and cost', () => {
    const { account, items } = openPanel();
    account.showActivity([
      activity(),
      activity({ type: 'sign_in', description: 'Signed in at 1', credits: 0 }),
      activity({ type: 'visibility', credits: 0 }),
      activity({ type: 'refund', description: '', credits: 0, at: undefined }),
    ]);
    expect(items()).toEqual([
      'Rain Mar 4, 2026, 5:06 AM 3 credits',
      'Signed in Mar 4, 2026, 5:06 AM',
      'Visibility changed Mar 4, 2026, 5:06 AM',
      'refund',
    ]);
  });

  it('shows the six newest, in place of those of before', () => {
    const { account, items } = openPanel();
    const eight = Array.from({ length: 8 }, (_, index) =>
      activity({ description: String(index), at: undefined, credits: 0 }),
    );
    account.showActivity(eight);
    account.showActivity(eight);
    expect(items()).toEqual(['0', '1', '2', '3', '4', '5']);
  });

  it('says that nothing has happened as long as nothing has', () => {
    const { root, account } = openPanel();
    const nothing = 'Nothing has happened yet.';
    expect(shownText(root)).toContain(nothing);
    account.showActivity([activity()]);
    expect(shownText(root)).not.toContain(nothing);
    account.showActivity([]);
    expect(shownText(root)).toContain(nothing);
  });

  it('follows the language in what it has written', () => {
    const { account, text, items } = openPanel();
    account.showActivity([activity({ type: 'sign_in' })]);
    text.choose('sw');
    expect(items()).toEqual(['Kuingia 4 Mac 2026, 05:06 salio 3']);
  });
});
