/** Signing in and out, and when it was: the session itself does not tell. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import type { IdentityProvider } from '../../client/sign-in.ts';
import type { Memory } from './browser-memory.ts';
import { readDate } from './records.ts';

export interface Signing {
  /** Leaves the page for the identity provider. */
  signIn(): Promise<void>;
  signOut(): Promise<void>;
  /** For a page that the identity provider may have sent people to; rejects when they were not signed in. */
  complete(): Promise<void>;
  signedInAt(): Date | undefined;
}

export interface SigningOptions {
  readonly client: Pick<GatewayClient, 'beginSignIn' | 'completeSignIn' | 'signOut'>;
  readonly identityProvider: IdentityProvider;
  readonly window: Window;
  readonly memory: Memory;
}

const SIGNED_IN_AT = 'studio.signed-in-at';

export function createSigning({ client, identityProvider, window, memory }: SigningOptions): Signing {
  return {
    async signIn() {
      window.location.assign(await client.beginSignIn(identityProvider));
    },
    signOut: () => client.signOut(),
    async complete() {
      try {
        if (await client.completeSignIn()) memory.setItem(SIGNED_IN_AT, new Date().toISOString());
      } finally {
        if (window.location.pathname !== '/') window.history.replaceState(null, '', '/');
      }
    },
    signedInAt: () => readDate(memory.getItem(SIGNED_IN_AT)),
  };
}
