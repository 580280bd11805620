import { describe, expect, it, mock } from 'bun:test';
import type { SessionCheck } from '../../../src/client/gateway-client.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { createSessionPanel } from '../../../src/demo/studio/session-panel.ts';
import { fakeTime, NOW, settle } from '../../client/fake-time.ts';
import { fire, openPart, shownText } from './page.ts';

const signedIn = (id: string, name: string): SessionCheck => ({
  authenticated: true,
  profile: { id, name, created_at: NOW.toISOString() },
});
const ADA = signedIn('1', 'Ada');
const NOBODY: SessionCheck = { authenticated: false };

function openPanel(since?: Date) {
  const advance = fakeTime();
  const { document, root, text, shown } = openPart('session');
  const readSession = mock((): Promise<SessionCheck> => Promise.resolve(ADA));
  const onOtherAccount = mock(() => {});
  /** Each status, with the name that is shown when the page hears of it. */
  const statuses: string[] = [];
  const onStatus = (status: string) => void statuses.push(`${status} ${shown('name')}`);
  const on = { onSignIn() {}, onSignOut() {}, onStatus, onOtherAccount };
  const panel = createSessionPanel(root, { text, readSession, signedInAt: () => since, ...on });
  const others = () => onOtherAccount.mock.calls.length;
  return { advance, document, root, shown, panel, readSession, statuses, others };
}

describe('the session panel', () => {
  it.each([
    ['Signed in', { authenticated: true }, new Date('2026-03-04T04:00:00Z'), 'Signed inMar 4, 2026, 4:00 AM'],
    ['Ada', ADA, undefined, ''],
  ] as const)('shows %j, since when, and when that was checked', async (...row) => {
    const [name, session, since, sinceRow] = row;
    const { root, shown, panel, readSession } = openPanel(since);
    expect(root.dataset['status']).toBe('unknown');
    readSession.mockResolvedValueOnce(session);
    await panel.check();
    expect(['name', 'since-row', 'checked'].map(shown)).toEqual([name, sinceRow, '5:06:07 AM']);
  });

  it('checks every 15 seconds, not while the page is hidden, and at once when it is seen again', async () => {
    const { advance, document, readSession } = openPanel();
    const setHidden = (value: boolean) => {
      Object.defineProperty(document, 'hidden', { configurable: true, value });
      fire(document, 'visibilitychange');
    };
    await advance(14_999);
    expect(readSession).not.toHaveBeenCalled();
    await advance(1);
    setHidden(true);
    await advance(60_000);
    expect(readSession).toHaveBeenCalledTimes(1);
    setHidden(false);
    expect(readSession).toHaveBeenCalledTimes(2);
  });

  it('keeps its status while checks have no response, and reports the end of a session once', async () => {
    const { shown, panel, readSession, statuses } = openPanel();
    for (const session of [undefined, ADA, undefined, NOBODY, NOBODY]) {
      readSession.mockReturnValueOnce(session ? Promise.resolve(session) : Promise.reject(new Error('lost')));
      await panel.check();
      expect(shown('checked')).toBe(session ? '5:06:07 AM' : 'No answer; trying again');
    }
    expect(statuses).toEqual(['signed-in Ada', 'signed-out Ada']);
  });

  it('offers to try it now when the first check has no response', async () => {
    const { root, shown, panel, readSession, statuses } = openPanel();
    expect(shown('try-now')).toBe('');
    readSession.mockRejectedValueOnce(new Error('lost'));
    await panel.check();
    expect([shown('waiting'), shown('try-now')]).toEqual([english.notReached, english.tryNow]);
    part(root, 'try-now').click();
    await settle();
    expect(statuses).toEqual(['signed-in Ada']);
  });

  it('ignores a check that was in flight when the session ended', async () => {
    const { panel, readSession, statuses } = openPanel();
    await panel.check();
    const late = Promise.withResolvers<SessionCheck>();
    readSession.mockReturnValueOnce(late.promise);
    const check = panel.check();
    panel.end();
    late.resolve(ADA);
    await check;
    expect(statuses).toEqual(['signed-in Ada', 'signed-out Ada']);
    await panel.check();
    expect(statuses).toHaveLength(3);
  });

  it('ends the session of an account before it shows another one, and is then not confirmed', async () => {
    const { panel, readSession, statuses, others } = openPanel();
    await panel.check();
    expect([await panel.confirm(), others()]).toEqual([true, 0]);
    // Another person may have the same name.
    readSession.mockResolvedValue(signedIn('2', 'Ada'));
    expect([await panel.confirm(), await panel.confirm(), others()]).toEqual([false, true, 1]);
    readSession.mockResolvedValue(signedIn('3', 'Grace'));
    expect([await panel.confirm(), others()]).toEqual([false, 2]);
    readSession.mockResolvedValue(NOBODY);
    expect([await panel.confirm(), others()]).toEqual([false, 2]);
    readSession.mockResolvedValue(ADA);
    await panel.check();
    expect(others()).toBe(3);
    const [on, off, grace] = ['signed-in Ada', 'signed-out Ada', 'signed-in Grace'];
    expect(statuses).toEqual([on, off, on, off, grace, 'signed-out Grace', on]);
    readSession.mockRejectedValue(new Error('no response'));
    await expect(panel.confirm()).rejects.toThrow('no response');
  });

  it('lists the four latest renewals, and forgets them with the session', () => {
    const { root, shown, panel } = openPanel();
    for (let minute = 0; minute < 6; minute++) {
      // Several calls share a renewal, and each of them reports it.
      for (const ms of [0, 1_900]) panel.addRefresh(new Date(NOW.getTime() + minute * 60_000 + ms));
    }
    const list = () => [...part(root, 'refreshes').children].map(shownText);
    expect(list()).toEqual(['11', '10', '09', '08'].map((minute) => `Refreshed at 5:${minute}:07 AM`));
    panel.end();
    expect([list(), shown('no-refreshes')]).toEqual([[], expect.stringMatching(/^None yet/)]);
  });
});
