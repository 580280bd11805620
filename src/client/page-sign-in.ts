/** Signs in from a page. Only a page that signs somebody in needs the code flow, so it is loaded then. */

import { type GatewayConnection, GatewayRequestError } from './gateway-request.ts';
import { type IdentityProvider, isSignInResponse, type SignInStorage, withoutResponse } from './sign-in.ts';

/** These exist in a page, but not in a worker or on a server. */
declare const location: { readonly href: string } | undefined;
declare const history:
  | { readonly state: unknown; replaceState(state: unknown, unused: string, address: string): void }
  | undefined;

export interface PageSignIn {
  begin(provider: IdentityProvider): Promise<string>;
  /** Exchanges the code once for all calls at the same time, also of other clients of the gateway. */
  complete(address?: string): Promise<boolean>;
  /** Resolves when no exchange is in flight, whatever its outcome. */
  whenOver(): Promise<void>;
}

/**
 * The exchanges in flight, by gateway. They belong to the page, whose address has the code only once: React's StrictMode
 * makes a client in a component twice, and runs an effect twice.
 */
const exchanges = new Map<string, Promise<void>>();

export function createPageSignIn(
  connection: GatewayConnection,
  storage: () => SignInStorage,
  onSignedIn: () => void,
): PageSignIn {
  const { baseUrl } = connection;
  const exchange = async (response: URL) => {
    const { completeSignIn } = await loadCodeFlow();
    await completeSignIn(connection, storage(), response);
    onSignedIn();
  };
  return {
    async begin(provider) {
      const { beginSignIn } = await loadCodeFlow();
      const { href } = await beginSignIn(storage(), provider);
      return href;
    },
    async complete(address = typeof location === 'undefined' ? '' : location.href) {
      if (!exchanges.has(baseUrl)) {
        // The browser's own error would quote the address, and with it the code.
        if (!URL.canParse(address)) throw new TypeError('An absolute address is needed.');
        const response = new URL(address);
        if (!isSignInResponse(response)) return false;
        cleanPageAddress();
        exchanges.set(
          baseUrl,
          exchange(response).finally(() => exchanges.delete(baseUrl)),
        );
      }
      await exchanges.get(baseUrl);
      return true;
    },
    async whenOver() {
      await exchanges.get(baseUrl)?.catch(() => {});
    },
  };
}

/** @throws GatewayRequestError when it cannot be loaded; some browsers load it again only after a reload of the page */
export async function loadCodeFlow() {
  try {
    return await import('./code-flow.ts');
  } catch (cause) {
    const message = 'A part of the page could not be loaded.';
    throw new GatewayRequestError(message, { status: 0, retryIsSafe: true, cause });
  }
}

/** Changes only the page's own address, which may differ from the one that was given. */
function cleanPageAddress(): void {
  if (typeof history === 'undefined' || typeof location === 'undefined') return;
  const address = new URL(location.href);
  if (isSignInResponse(address)) history.replaceState(history.state, '', withoutResponse(address).href);
}
