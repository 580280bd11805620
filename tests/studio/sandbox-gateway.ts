/** A gateway on a real socket in front of the sandbox, whose redirect URI is on the web app's own origin. */

import { SANDBOX_CLIENT, startTestSandbox } from '../support/sandbox-account.ts';
import { startWorld } from '../support/world.ts';

export async function startSandboxGateway(origin: string) {
  const redirectUri = `${origin}/callback`;
  const sandbox = await startTestSandbox({ redirectUris: [redirectUri] });
  const world = startWorld({
    UPSTREAM_URL: sandbox.upstream.url,
    IDP_URL: sandbox.identityProviderUrl,
    IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
    IDP_REDIRECT_URI: redirectUri,
    ALLOWED_ORIGINS: origin,
  });
  return {
    url: world.url,
    sandbox,
    redirectUri,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await sandbox.stop();
    },
  };
}
