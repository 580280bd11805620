import { expect, it, mock } from 'bun:test';
import type { SessionCheck } from '../../../src/client/gateway-client.ts';
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

it('the session panel checks every 15 seconds, not while the page is hidden, and at once when it is seen again', async () => {
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

it('the session panel keeps its status without a response, reports the end once, and ignores a check that was in flight then', async () => {
  const { root, panel, readSession, statuses } = openPanel();
  const lost = () => readSession.mockRejectedValueOnce(new Error('lost'));
  lost();
  await panel.check();
  // The upstream may have no profiles.
  readSession.mockResolvedValueOnce({ authenticated: true });
  part(root, 'try-now').click();
  await settle();
  lost();
  await panel.check();
  const late = Promise.withResolvers<SessionCheck>();
  readSession.mockReturnValueOnce(late.promise);
  const check = panel.check();
  panel.end();
  late.resolve(ADA);
  await check;
  readSession.mockResolvedValueOnce(NOBODY);
  await panel.check();
  expect(statuses).toEqual(['signed-in Signed in', 'signed-out Signed in']);
  await panel.check();
  expect(statuses.at(-1)).toBe('signed-in Ada');
});

it('the session panel ends the session of an account, which its id tells, before it shows another, and does not confirm it', async () => {
  const { panel, readSession, statuses, others } = openPanel();
  await panel.check();
  readSession.mockResolvedValue(signedIn('2', 'Ada'));
  expect([await panel.confirm(), await panel.confirm(), others()]).toEqual([false, true, 1]);
  expect(statuses).toEqual(['signed-in Ada', 'signed-out Ada', 'signed-in Ada']);
});
