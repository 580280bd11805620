import { describe, expect, it, mock } from 'bun:test';
import type { SessionCheck } from '../../../src/client/gateway-client.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { createSessionPanel } from '../../../src/demo/studio/session-panel.ts';
import { fakeTime, NOW } from '../fake-time.ts';
import { fire, openPart, shownText } from './page.ts';

const ADA: SessionCheck = { authenticated: true, profile: { id: 1, name: 'Ada' } };
const NOBODY: SessionCheck = { authenticated: false };

function openPanel(since?: Date) {
  const advance = fakeTime();
  const { document, root, text, shown } = openPart('session');
  const readSession = mock((): Promise<SessionCheck> => Promise.resolve(ADA));
  const onStatus = mock((_status: string, _before: string) => {});
  const onOtherAccount = mock(() => {});
  const on = { onSignIn() {}, onSignOut() {}, onStatus, onOtherAccount };
  const panel = createSessionPanel(root, { text, readSession, signedInAt: () => since, ...on });
  const statuses = () => onStatus.mock.calls.map(([status]) => status);
  return { advance, document, root, text, shown, panel, readSession, onStatus, onOtherAccount, statuses };
}

describe('the session panel', () => {
  it('shows who is signed in, if that is known, since when, and when that was checked', async () => {
    const { root, text, shown, panel, readSession } = openPanel(new Date('2026-03-04T04:00:00Z'));
    expect(root.dataset['status']).toBe('unknown');
    readSession.mockResolvedValueOnce({ authenticated: true });
    await panel.check();
    const facts = () => ['name', 'since', 'checked'].map(shown);
    expect(facts()).toEqual(['Signed in', 'Mar 4, 2026, 4:00 AM', '5:06:07 AM']);
    await panel.check();
    text.choose('sw');
    expect(shown('name')).toBe('Ada');
    const other = openPanel();
    await other.panel.check();
    expect(other.shown('since-row')).toBe('');
  });

  it('checks every 15 seconds, not while the page is hidden, and at once when it is seen again', async () => {
    const { advance, document, readSession } = openPanel();
    const setHidden = (value: boolean) => {
      Object.defineProperty(document, 'hidden', { configurable: true, value });
      fire(document, 'visibilitychange');
    };
    await advance(14_999);
    expect(readSession).not.toHaveBeenCalled();
    await advance(15_001);
    setHidden(true);
    await advance(60_000);
    expect(readSession).toHaveBeenCalledTimes(2);
    setHidden(false);
    expect(readSession).toHaveBeenCalledTimes(3);
  });

  it('keeps its status while checks have no response, and reports the end of a session once', async () => {
    const { shown, panel, readSession, statuses } = openPanel();
    const none = ['No answer; trying again', 'The gateway does not answer. Trying again by itself…'];
    for (const session of [undefined, ADA, undefined, NOBODY, NOBODY]) {
      if (session) readSession.mockResolvedValueOnce(session);
      else readSession.mockRejectedValueOnce(new Error('no response'));
      await panel.check();
      if (session) expect(shown('checked')).toBe('5:06:07 AM');
      else expect([shown('checked'), shown('waiting')]).toEqual(none);
    }
    expect(statuses()).toEqual(['signed-in', 'signed-out']);
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
    expect(statuses()).toEqual(['signed-in', 'signed-out']);
    await panel.check();
    expect(statuses()).toEqual(['signed-in', 'signed-out', 'signed-in']);
  });

  it('ends the session of an account before it shows another one, and is then not confirmed', async () => {
    const { shown, panel, readSession, onStatus, onOtherAccount, statuses } = openPanel();
    await panel.check();
    expect([await panel.confirm(), onOtherAccount.mock.calls.length]).toEqual([true, 0]);
    let nameAtEnd = '';
    onStatus.mockImplementation((status) => {
      if (status === 'signed-out') nameAtEnd = shown('name');
    });
    // Another person may have the same name.
    readSession.mockResolvedValue({ authenticated: true, profile: { id: 2, name: 'Ada' } });
    expect([await panel.confirm(), await panel.confirm()]).toEqual([false, true]);
    expect(statuses()).toEqual(['signed-in', 'signed-out', 'signed-in']);
    expect([nameAtEnd, onOtherAccount.mock.calls.length]).toEqual(['Ada', 1]);
    readSession.mockResolvedValue(NOBODY);
    expect([await panel.confirm(), statuses().at(-1)]).toEqual([false, 'signed-out']);
    readSession.mockResolvedValue(ADA);
    await panel.check();
    expect(onOtherAccount).toHaveBeenCalledTimes(2);
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
    expect(shown('no-refreshes')).toBe('');
    panel.end();
    expect([list(), shown('no-refreshes')]).toEqual([[], expect.stringMatching(/^None yet/)]);
  });
});
