/** Completes the sign-in of a page, with one exchange for all calls at the same time. */

import type { GatewayConnection } from './gateway-request.ts';
import { completeSignIn, isSignInResponse, type SignInStorage, withoutResponse } from './sign-in.ts';

/** These exist in a page, but not in a worker or on a server. */
declare const location: { readonly href: string } | undefined;
declare const history:
  | { readonly state: unknown; replaceState(state: unknown, unused: string, address: string): void }
  | undefined;

export interface SignInCompletion {
  complete(address?: string): Promise<boolean>;
  /** Resolves when no exchange is in flight, whatever its outcome. */
  whenOver(): Promise<void>;
}

export function createSignInCompletion(
  connection: GatewayConnection,
  storage: () => SignInStorage,
): SignInCompletion {
  let inFlight: Promise<void> | undefined;
  return {
    async complete(address = typeof location === 'undefined' ? '' : location.href) {
      if (!inFlight) {
        // The browser's own error would quote the address, and with it the code.
        if (!URL.canParse(address)) throw new TypeError('An absolute address is needed.');
        const response = new URL(address);
        if (!isSignInResponse(response)) return false;
        cleanPageAddress();
        inFlight = completeSignIn(connection, storage(), response).finally(() => {
          inFlight = undefined;
        });
      }
      await inFlight;
      return true;
    },
    async whenOver() {
      await inFlight?.catch(() => {});
    },
  };
}

/** Changes only the page's own address, which may differ from the one that was given. */
function cleanPageAddress(): void {
  if (typeof history === 'undefined' || typeof location === 'undefined') return;
  const address = new URL(location.href);
  if (isSignInResponse(address)) history.replaceState(history.state, '', withoutResponse(address).href);
}
