/** Who is signed in, and what the gateway does to keep it so. Asks for the session as long as the page is visible. */

import type { SessionCheck } from '../../client/gateway-client.ts';
import { fromTemplate, part } from './parts.ts';
import { readName } from './records.ts';
import type { Text } from './text.ts';

export type SessionStatus = 'unknown' | 'signed-out' | 'signed-in';

export interface SessionPanel {
  /** Asks now. */
  check(): Promise<void>;
  /** The session is over: signed out, or refused by a call. */
  end(): void;
  /** The gateway has renewed the session just now. */
  addRefresh(at: Date): void;
}

export interface SessionPanelOptions {
  readonly text: Text;
  readonly readSession: () => Promise<SessionCheck>;
  /** When the person signed in, where that is known. */
  readonly signedInAt: () => Date | undefined;
  readonly onSignIn: () => void;
  readonly onSignOut: () => void;
  /** Called when it becomes another one. */
  readonly onStatus: (status: SessionStatus, before: SessionStatus) => void;
}

const CHECK_MS = 15_000;
const SHOWN_REFRESHES = 4;
/** Calls at the same time share one renewal, and the answer to each of them tells of it. */
const SAME_RENEWAL_MS = 2_000;

export function createSessionPanel(root: HTMLElement, options: SessionPanelOptions): SessionPanel {
  const { text, readSession, signedInAt, onSignIn, onSignOut, onStatus } = options;
  const { ownerDocument: document } = root;
  let status: SessionStatus = 'unknown';
  /** How often a session has ended here. What was asked before an end says nothing about what came after it. */
  let ends = 0;
  let toldOfRenewalAt = 0;

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

  async function check(): Promise<void> {
    const endsBefore = ends;
    try {
      const session = await readSession();
      if (ends !== endsBefore) return;
      text.write(part(root, 'checked'), 'at', { at: new Date() });
      if (session.authenticated) showProfile(session.profile);
      become(session.authenticated ? 'signed-in' : 'signed-out');
    } catch {
      text.write(part(root, 'checked'), 'notChecked');
      text.write(part(root, 'waiting'), 'notReached');
    }
  }

  function forgetRefreshes(): void {
    part(root, 'refreshes').replaceChildren();
    part(root, 'no-refreshes').hidden = false;
  }

  const checkWhenVisible = () => {
    if (!document.hidden) void check();
  };
  document.defaultView?.setInterval(checkWhenVisible, CHECK_MS);
  document.addEventListener('visibilitychange', checkWhenVisible);
  part(root, 'sign-in').addEventListener('click', onSignIn);
  part(root, 'sign-out').addEventListener('click', onSignOut);
  root.dataset['status'] = status;

  return {
    check,
    end() {
      ends += 1;
      forgetRefreshes();
      become('signed-out');
    },
    addRefresh(at) {
      const isTold = at.getTime() - toldOfRenewalAt < SAME_RENEWAL_MS;
      toldOfRenewalAt = at.getTime();
      if (isTold) return;
      const element = fromTemplate(document, 'refresh-item');
      text.write(element, 'refreshedAt', { at });
      const list = part(root, 'refreshes');
      list.prepend(element);
      for (const old of [...list.children].slice(SHOWN_REFRESHES)) old.remove();
      part(root, 'no-refreshes').hidden = true;
    },
  };
}
