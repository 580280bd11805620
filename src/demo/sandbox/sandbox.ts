/** Starts the sandbox: a local identity provider and upstream API, so that nobody needs a production account. */

import {
  type IdentityProviderOptions,
  startIdentityProvider,
} from './identity-provider/identity-provider.ts';
import { startUpstream, type Upstream, type UpstreamOptions } from './music-api/music-api.ts';

export interface SandboxOptions
  extends Pick<IdentityProviderOptions, 'clientId' | 'credentials' | 'redirectUris'>,
    Pick<UpstreamOptions, 'accessTokenSeconds' | 'pace' | 'startingBalance' | 'now'> {
  /** By default, any free port. */
  identityProviderPort?: number;
  /** By default, any free port. */
  upstreamPort?: number;
}

export interface Sandbox {
  /** Without a trailing slash. */
  identityProviderUrl: string;
  upstream: Upstream;
  stop(): Promise<void>;
}

// The loopback address makes the sandbox cross-site for a Studio on "localhost", as it is in production.
const HOSTNAME = '127.0.0.1';

/** Rejects with the EADDRINUSE error if a port is taken, and leaves nothing running. */
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
