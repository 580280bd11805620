/** Shows who is signed in and when the gateway renewed the session. Checks the session while the page is visible. */

import type { SessionCheck } from '../../client/gateway-client.ts';
import { fromTemplate, part } from './parts.ts';
import { readAccountId, readName } from './records.ts';
import { runOnce } from './run-once.ts';
import { shareCheck } from './shared-check.ts';
import type { Text } from './text.ts';
import { whenBack } from './when-back.ts';

export type SessionStatus = 'unknown' | 'signed-out' | 'signed-in';

export interface SessionPanel {
  /** What tells the account that is signed in from others. Undefined without a session, or if nothing tells it. */
  readonly account: string | undefined;
  /** Checks the session now. */
  check(): Promise<void>;
  /**
   * Checks whether the session is still that of the account that the page shows. If it is not, the page shows that
   * before the promise resolves to false. Rejects if there is no response.
   */
  confirm(): Promise<boolean>;
  /** Shows that nobody is signed in, because the person signed out or a response said that the session has ended. */
  end(): void;
  /** Adds a renewal to the list, unless it is already shown. */
  addRefresh(at: Date): void;
}

export interface SessionPanelOptions {
  readonly text: Text;
  readonly readSession: () => Promise<SessionCheck>;
  /** The time of the sign-in, if it is known. */
  readonly signedInAt: () => Date | undefined;
  readonly onSignIn: () => void;
  readonly onSignOut: () => void;
  /** Called when the status changes. */
  readonly onStatus: (status: SessionStatus, before: SessionStatus) => void;
  /** Called when the session is that of another account than the one before, after its status. */
  readonly onOtherAccount: () => void;
}

const CHECK_MS = 15_000;
const SHOWN_REFRESHES = 4;
/** Simultaneous calls share one renewal, and the response to each of them reports it. */
const SAME_RENEWAL_MS = 2_000;

export function createSessionPanel(root: HTMLElement, options: SessionPanelOptions): SessionPanel {
  const { text, readSession, signedInAt, onSignIn, onSignOut, onStatus, onOtherAccount } = options;
  const { ownerDocument: document } = root;
  const tryNow = part(root, 'try-now');
  let status: SessionStatus = 'unknown';
  /** How often a session has ended. A check that started before an end must not change the status after it. */
  let ends = 0;
  let lastReportAt = 0;
  /** The account that was signed in last. */
  let account: string | undefined;

  function become(next: SessionStatus): void {
    const before = status;
    status = next;
    root.dataset['status'] = next;
    if (next !== before) onStatus(next, before);
  }

  function showProfile(profile: unknown): void {
    const name = readName(profile);
    const who = part(root, 'name');
    text.write(who, name === '' ? 'nameless' : undefined);
    if (name !== '') who.textContent = name;
    const since = signedInAt();
    part(root, 'since-row').hidden = since === undefined;
    text.write(part(root, 'since'), since && 'on', { at: since ?? 0 });
  }

  function showAccount(profile: unknown): void {
    // A profile need not say whose it is. Then each sign-in counts as that of another account.
    const found = readAccountId(profile) || (signedInAt()?.toISOString() ?? '');
    const isOther = account !== undefined && account !== found;
    account = found;
    if (isOther) end();
    showProfile(profile);
    become('signed-in');
    if (isOther) onOtherAccount();
  }

  function end(): void {
    ends += 1;
    forgetRefreshes();
    for (const name of ['name', 'since']) text.write(part(root, name), undefined);
    become('signed-out');
  }

  const checkOnce = shareCheck(async () => {
    const endsBefore = ends;
    try {
      const session = await readSession();
      if (ends !== endsBefore) return;
      text.write(part(root, 'checked'), 'at', { at: new Date() });
      if (session.authenticated) showAccount(session.profile);
      else end();
    } catch (error) {
      text.write(part(root, 'checked'), 'notChecked');
      text.write(part(root, 'waiting'), 'notReached');
      tryNow.hidden = false;
      throw error;
    }
  });

  // The page itself shows that a check has failed.
  const check = () => checkOnce().catch(() => {});

  function forgetRefreshes(): void {
    part(root, 'refreshes').replaceChildren();
    part(root, 'no-refreshes').hidden = false;
  }

  const checkWhenVisible = () => {
    if (!document.hidden) void check();
  };
  document.defaultView?.setInterval(checkWhenVisible, CHECK_MS);
  if (document.defaultView) whenBack(document.defaultView, () => void check());
  tryNow.addEventListener('click', () => void runOnce(tryNow, check));
  part(root, 'sign-in').addEventListener('click', onSignIn);
  part(root, 'sign-out').addEventListener('click', onSignOut);
  root.dataset['status'] = status;

  return {
    get account() {
      return status === 'signed-in' ? account || undefined : undefined;
    },
    check,
    async confirm() {
      const endsBefore = ends;
      await checkOnce();
      return status === 'signed-in' && ends === endsBefore;
    },
    end,
    addRefresh(at) {
      const isSameRenewal = at.getTime() - lastReportAt < SAME_RENEWAL_MS;
      lastReportAt = at.getTime();
      if (isSameRenewal) return;
      const element = fromTemplate(document, 'refresh-item');
      text.write(element, 'refreshedAt', { at });
      const list = part(root, 'refreshes');
      list.prepend(element);
      for (const old of [...list.children].slice(SHOWN_REFRESHES)) old.remove();
      part(root, 'no-refreshes').hidden = true;
    },
  };
}
