import { describe, expect, it, mock } from 'bun:test';
import type { SessionCheck } from '../../../src/client/gateway-client.ts';
import { part } from '../../../src/demo/studio/parts.ts';
import { createSessionPanel, type SessionStatus } from '../../../src/demo/studio/session-panel.ts';
import { button, fakeTime, fire, NOW, openPage, shownText } from './page.ts';

const ADA: SessionCheck = { authenticated: true, profile: { name: 'Ada' } };
const NOBODY: SessionCheck = { authenticated: false };

function openPanel({ since }: { since?: Date } = {}) {
  const { document, text } = openPage();
  const root = part(document, 'session');
  const readSession = mock((): Promise<SessionCheck> => Promise.resolve(ADA));
  const onSignIn = mock(() => {});
  const onSignOut = mock(() => {});
  const onStatus = mock((_status: SessionStatus, _before: SessionStatus) => {});
  const signedInAt = () => since;
  const panel = createSessionPanel(root, { text, readSession, signedInAt, onSignIn, onSignOut, onStatus });
  return { document, text, root, panel, readSession, onSignIn, onSignOut, onStatus };
}

function setHidden(document: Document, isHidden: boolean): void {
  Object.defineProperty(document, 'hidden', { configurable: true, value: isHidden });
  fire(document, 'visibilitychange');
}

describe('the session', () => {
  it('is a region with that name, and unknown at first', () => {
    const { document, root } = openPanel();
    expect(root.tagName).toBe('SECTION');
    expect(document.querySelector(`#${root.getAttribute('aria-labelledby')}`)?.textContent).toBe('Session');
    expect(root.dataset['status']).toBe('unknown');
  });

  it('tells who is signed in, since when, and when that was last checked', async () => {
    fakeTime();
    const { root, panel, onStatus } = openPanel({ since: new Date('2026-03-04T04:00:00Z') });
    await panel.check();
    expect(root.dataset['status']).toBe('signed-in');
    expect(onStatus.mock.calls).toEqual([['signed-in', 'unknown']]);
    expect(part(root, 'name').textContent).toBe('Ada');
    expect(part(root, 'since').textContent.replace(/\s/g, ' ')).toBe('Mar 4, 2026, 4:00 AM');
    expect(part(root, 'checked').textContent.replace(/\s/g, ' ')).toBe('5:06:07 AM');
  });

  it('does without a name and without a time of signing in', async () => {
    const { root, panel, readSession } = openPanel();
    readSession.mockResolvedValue({ authenticated: true });
    await panel.check();
    expect(root.dataset['status']).toBe('signed-in');
    expect(part(root, 'name').textContent).toBe('Signed in');
    expect(part(root, 'since-row').hidden).toBe(true);
  });

  it('shows the name of the one who is signed in now', async () => {
    const { root, panel, readSession, text } = openPanel();
    readSession.mockResolvedValueOnce({ authenticated: true });
    await panel.check();
    await panel.check();
    text.choose('sw');
    expect(part(root, 'name').textContent).toBe('Ada');
  });

  it('has a button for each way', () => {
    const { root, onSignIn, onSignOut } = openPanel();
    button(root, 'Sign in').click();
    expect([onSignIn.mock.calls.length, onSignOut.mock.calls.length]).toEqual([1, 0]);
    button(root, 'Sign out').click();
    expect([onSignIn.mock.calls.length, onSignOut.mock.calls.length]).toEqual([1, 1]);
  });
});

describe('a check of the session', () => {
  it('is made every 15 seconds, but not while the page is hidden, and at once when it is seen again', async () => {
    const advance = fakeTime();
    const { document, readSession } = openPanel();
    await advance(14_999);
    expect(readSession).not.toHaveBeenCalled();
    await advance(1);
    await advance(15_000);
    expect(readSession).toHaveBeenCalledTimes(2);
    setHidden(document, true);
    await advance(60_000);
    expect(readSession).toHaveBeenCalledTimes(2);
    setHidden(document, false);
    expect(readSession).toHaveBeenCalledTimes(3);
  });

  it('that gets no answer changes nothing but the time of the last one', async () => {
    const { root, panel, readSession, onStatus } = openPanel();
    await panel.check();
    readSession.mockRejectedValueOnce(new Error('no answer'));
    await panel.check();
    expect(root.dataset['status']).toBe('signed-in');
    expect(onStatus).toHaveBeenCalledTimes(1);
    expect(part(root, 'checked').textContent).toBe('No answer; trying again');
    await panel.check();
    expect(part(root, 'checked').textContent).toMatch(/^\d+:\d\d:\d\d/);
  });

  it('that gets no answer at first says so where a person waits', async () => {
    const { root, panel, readSession } = openPanel();
    readSession.mockRejectedValueOnce(new Error('no answer'));
    await panel.check();
    expect(root.dataset['status']).toBe('unknown');
    expect(part(root, 'waiting').textContent).toStartWith('The gateway does not answer.');
  });

  it('tells of the end of the session once', async () => {
    const { root, panel, readSession, onStatus } = openPanel();
    await panel.check();
    readSession.mockResolvedValue(NOBODY);
    await panel.check();
    await panel.check();
    expect(root.dataset['status']).toBe('signed-out');
    expect(onStatus.mock.calls).toEqual([
      ['signed-in', 'unknown'],
      ['signed-out', 'signed-in'],
    ]);
  });

  it('that was under way when the session ended does not begin it again', async () => {
    const { root, panel, readSession, onStatus } = openPanel();
    await panel.check();
    const late = Promise.withResolvers<SessionCheck>();
    readSession.mockReturnValueOnce(late.promise);
    const check = panel.check();
    panel.end();
    late.resolve(ADA);
    await check;
    expect(root.dataset['status']).toBe('signed-out');
    expect(onStatus).toHaveBeenLastCalledWith('signed-out', 'signed-in');
    await panel.check();
    expect(root.dataset['status']).toBe('signed-in');
  });
});

describe('a renewal of the session', () => {
  const times = (root: HTMLElement) =>
    [...part(root, 'refreshes').children].map((item) => item.textContent.replace(/\s/g, ' '));

  it('is listed with its time, the newest first, four at most', () => {
    const { root, panel } = openPanel();
    expect(shownText(root)).toContain('None yet.');
    for (let minute = 0; minute < 6; minute++) panel.addRefresh(new Date(NOW.getTime() + minute * 60_000));
    expect(times(root)).toEqual(['11', '10', '09', '08'].map((minute) => `Refreshed at 5:${minute}:07 AM`));
    expect(shownText(root)).not.toContain('None yet.');
  });

  it('that several calls share is listed once', () => {
    const { root, panel } = openPanel();
    for (let call = 0; call < 4; call++) panel.addRefresh(new Date(NOW.getTime() + call * 100));
    expect(times(root)).toHaveLength(1);
  });

  it('is no part of the next session', () => {
    const { root, panel } = openPanel();
    panel.addRefresh(NOW);
    panel.end();
    expect(times(root)).toEqual([]);
    expect(shownText(root)).toContain('None yet.');
  });
});
