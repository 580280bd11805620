/** Signs in and out. Remembers the time of the sign-in, because the session check does not contain it. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import type { IdentityProvider } from '../../client/sign-in.ts';
import type { Memory } from './browser-memory.ts';
import { readDate } from './records.ts';

export interface Signing {
  /** Navigates to the identity provider. */
  signIn(): Promise<void>;
  signOut(): Promise<void>;
  /** Completes the sign-in if the page was opened by its redirect. Rejects if the sign-in failed. */
  complete(): Promise<boolean>;
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
        const isSignedIn = await client.completeSignIn();
        if (isSignedIn) memory.setItem(SIGNED_IN_AT, new Date().toISOString());
        return isSignedIn;
      } finally {
        if (window.location.pathname !== '/') window.history.replaceState(null, '', '/');
      }
    },
    signedInAt: () => readDate(memory.getItem(SIGNED_IN_AT)),
  };
}
