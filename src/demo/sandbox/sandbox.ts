/** Starts the sandbox: an identity provider and an upstream API on this machine, instead of a production account. */

import {
  type IdentityProviderOptions,
  startIdentityProvider,
} from './identity-provider/identity-provider.ts';
import { startUpstream, type Upstream, type UpstreamOptions } from './music-api/music-api.ts';

export interface SandboxOptions
  extends Pick<IdentityProviderOptions, 'clientId' | 'credentials' | 'redirectUris'>,
    Pick<UpstreamOptions, 'accessTokenSeconds' | 'pace' | 'startingBalance' | 'now'> {
  /** Any free port unless given. */
  identityProviderPort?: number;
  /** Any free port unless given. */
  upstreamPort?: number;
}

export interface Sandbox {
  /** Without a trailing slash. */
  identityProviderUrl: string;
  upstream: Upstream;
  stop(): Promise<void>;
}

// Loopback only; by address, so that a studio on "localhost" is another site, as it is in production.
const HOSTNAME = '127.0.0.1';

/** A taken port rejects with the EADDRINUSE error, and leaves nothing running. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const {
    identityProviderPort = 0,
    upstreamPort = 0,
    clientId,
    credentials,
    redirectUris,
    ...behaviour
  } = options;
  const client = { clientId, redirectUris, ...(credentials && { credentials }) };
  const identityProvider = await startIdentityProvider({
    port: identityProviderPort,
    hostname: HOSTNAME,
    ...client,
  });
  const identityProviderUrl = identityProvider.url;
  try {
    const upstream = await startUpstream({
      port: upstreamPort,
      hostname: HOSTNAME,
      identityProviderUrl,
      ...behaviour,
    });
    return {
      identityProviderUrl,
      upstream,
      async stop() {
        await Promise.all([upstream.stop(), identityProvider.stop()]);
      },
    };
  } catch (error) {
    await identityProvider.stop();
    throw error;
  }
}
