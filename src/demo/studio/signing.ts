/**
 * Signs in and out. Remembers the time of the sign-in, because the session check does not contain it, and a sign-out,
 * because it leaves the session at the identity provider.
 */

import type { GatewayClient } from '../../client/gateway-client.ts';
import type { IdentityProvider } from '../../client/sign-in.ts';
import { type Memory, openMemory } from './browser-memory.ts';
import { readDate } from './records.ts';

export interface Signing {
  /** Navigates to the identity provider. After a sign-out, that asks who it is instead of taking the same person. */
  signIn(): Promise<void>;
  signOut(): Promise<void>;
  /** Whether the last session of this browser was ended by a sign-out, in whichever tab. */
  hasSignedOut(): boolean;
  /** Completes the sign-in if the page was opened by its redirect. Rejects if the sign-in failed. */
  complete(): Promise<boolean>;
  /**
   * After a sign-in, goes back to the page on which it began, because the identity provider's pages between the two are
   * a dead end for Back. False if this page stays.
   */
  returnToStart(): boolean;
  /** Whether this page was gone back to so. True only once. */
  hasReturned(): boolean;
  signedInAt(): Date | undefined;
}

export interface SigningOptions {
  readonly client: Pick<GatewayClient, 'beginSignIn' | 'completeSignIn' | 'signOut'>;
  readonly identityProvider: IdentityProvider;
  readonly window: Window;
  readonly memory: Memory;
}

const SIGNED_IN_AT = 'studio.signed-in-at';
/** Set between a sign-out and the next sign-in. */
const SIGNED_OUT = 'studio.signed-out';
/** The length of the history at the identity provider's first page, which is then its last one. */
const PROVIDER_LENGTH = 'studio.provider-length';
/** Set while the page goes back. */
const RETURNING = 'studio.returning';
/** Browsers forget the oldest entries beyond so many, and their number says nothing then. */
const LONGEST_HISTORY = 50;

export function createSigning({ client, identityProvider, window, memory }: SigningOptions): Signing {
  const tab = openMemory(() => window.sessionStorage);
  const hasSignedOut = () => memory.getItem(SIGNED_OUT) !== null;
  return {
    hasSignedOut,
    async signIn() {
      // The demo's provider does not know `select_account`.
      const asking = hasSignedOut() && { prompt: 'login' as const };
      const address = await client.beginSignIn({ ...identityProvider, ...asking });
      const { history, location } = window;
      // The provider's page replaces this entry, which removes all that were ahead.
      history.pushState(null, '', location.href);
      tab.setItem(PROVIDER_LENGTH, String(history.length));
      location.replace(address);
    },
    async signOut() {
      // At its end the client tells the other tabs, which ask then how their session ended.
      memory.setItem(SIGNED_OUT, 'true');
      try {
        await client.signOut();
      } catch (error) {
        memory.removeItem(SIGNED_OUT);
        throw error;
      }
    },
    async complete() {
      try {
        const isSignedIn = await client.completeSignIn();
        if (!isSignedIn) return false;
        memory.setItem(SIGNED_IN_AT, new Date().toISOString());
        memory.removeItem(SIGNED_OUT);
        return true;
      } finally {
        if (window.location.pathname !== '/') window.history.replaceState(null, '', '/');
      }
    },
    returnToStart() {
      const { history } = window;
      const begun = Number(tab.getItem(PROVIDER_LENGTH));
      tab.removeItem(PROVIDER_LENGTH);
      if (begun === 0 || history.length < begun || history.length >= LONGEST_HISTORY) return false;
      tab.setItem(RETURNING, 'true');
      history.go(begun - history.length - 1);
      return true;
    },
    hasReturned() {
      const hasReturned = tab.getItem(RETURNING) !== null;
      tab.removeItem(RETURNING);
      return hasReturned;
    },
    signedInAt: () => readDate(memory.getItem(SIGNED_IN_AT)),
  };
}
