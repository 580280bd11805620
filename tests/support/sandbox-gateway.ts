/** A gateway on a real socket in front of the sandbox, whose redirect URI is on the web app's own origin. */

import { createGateway } from '../../src/gateway/gateway.ts';
import { recordLog } from './recorded-log.ts';
import { SANDBOX_CLIENT, startTestSandbox } from './sandbox-account.ts';
import { ORIGIN, testSettings } from './world.ts';

export type SandboxGateway = Awaited<ReturnType<typeof startSandboxGateway>>;

/** @param pace how many times faster than it plays a track is generated */
export async function startSandboxGateway(origin = ORIGIN, pace = Number.POSITIVE_INFINITY) {
  const redirectUri = `${origin}/callback`;
  const sandbox = await startTestSandbox({ redirectUris: [redirectUri], pace });
  const settings = testSettings({
    UPSTREAM_URL: sandbox.upstream.url,
    IDP_URL: sandbox.identityProviderUrl,
    IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
    IDP_REDIRECT_URI: redirectUri,
    ALLOWED_ORIGINS: origin,
  });
  const gateway = createGateway({ settings, logger: recordLog().logger });
  gateway.listen({ port: 0, hostname: '127.0.0.1' });
  return {
    url: `http://127.0.0.1:${gateway.server?.port}`,
    sandbox,
    redirectUri,
    async [Symbol.asyncDispose]() {
      await gateway.stop(true);
      await sandbox.stop();
    },
  };
}
