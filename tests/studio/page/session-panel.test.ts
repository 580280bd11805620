import { describe, expect, it, mock } from 'bun:test';
import type { SessionCheck } from '../../../src/client/gateway-client.ts';
import { english } from '../../../src/demo/studio/english.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { createSessionPanel } from '../../../src/demo/studio/session-panel.ts';
import { fakeTime, NOW, settle } from '../../client/fake-time.ts';
import { fire, openPart } from './page.ts';

const signedIn = (id: string, name: string): SessionCheck => ({
  authenticated: true,
  profile: { id, name, created_at: NOW.toISOString() },
});
const ADA = signedIn('1', 'Ada');
const NOBODY: SessionCheck = { authenticated: false };

function openPanel() {
  const advance = fakeTime();
  const { document, root, text, shown } = openPart('session');
  const readSession = mock((): Promise<SessionCheck> => Promise.resolve(ADA));
  const onOtherAccount = mock(() => {});
  /** Each status, with the name that is shown when the page hears of it. */
  const statuses: string[] = [];
  const onStatus = (status: string) => void statuses.push(`${status} ${shown('name')}`);
  const on = { onSignIn() {}, onSignOut() {}, onStatus, onOtherAccount };
  const panel = createSessionPanel(root, { text, readSession, signedInAt: () => undefined, ...on });
  const others = () => onOtherAccount.mock.calls.length;
  return { advance, document, root, shown, panel, readSession, statuses, others };
}

describe('the session panel', () => {
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

  it('offers to try again without a response, keeps its status meanwhile, and reports the end once', async () => {
    const { root, shown, panel, readSession, statuses } = openPanel();
    const lost = () => readSession.mockRejectedValueOnce(new Error('lost'));
    lost();
    await panel.check();
    expect(shown('waiting')).toBe(english.notReached);
    // The upstream may have no profiles.
    readSession.mockResolvedValueOnce({ authenticated: true });
    part(root, 'try-now').click();
    await settle();
    expect(shown('checked')).toBe('5:06:07 AM');
    lost();
    await panel.check();
    expect(shown('checked')).toBe('No answer; trying again');
    readSession.mockResolvedValue(NOBODY);
    for (const _ of ['reported', 'known']) await panel.check();
    expect(statuses).toEqual(['signed-in Signed in', 'signed-out Signed in']);
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
});
