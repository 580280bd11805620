/** The demo on free ports: sandbox, gateway and Studio, with a network before them that can be broken. */

import { PIECE_IDS } from '../../src/demo/sandbox/music-api/public-pieces.ts';
import type { SandboxOptions } from '../../src/demo/sandbox/sandbox.ts';
import { startStudio } from '../../src/demo/studio-server.ts';
import { signInThroughForm } from '../../src/demo/tour/sign-in-through-form.ts';
import { openUpstreamGate } from '../deploy/proxies/upstream-gate.ts';
import { freePorts } from '../support/free-ports.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { startTestSandbox } from '../support/sandbox-account.ts';
import { openNetwork } from './breakable-network.ts';

export type DemoWorld = Awaited<ReturnType<typeof startDemoWorld>>;
export type DemoWorldOptions = Pick<SandboxOptions, 'startingBalance'>;

/** Generation is as fast as possible; a test that needs it slow holds the audio back at the gate. */
export async function startDemoWorld(options: DemoWorldOptions = {}) {
  await using stack = new AsyncDisposableStack();
  const port = await freePorts(3);
  const [gatewayUrl, studioUrl] = [`http://localhost:${port}`, `http://localhost:${port + 1}`];
  const client = { clientId: 'music-studio', redirectUri: `${studioUrl}/callback` };
  const { clientId, redirectUri } = client;
  const registered = { clientId, redirectUris: [redirectUri] };
  const sandbox = stack.use(await startTestSandbox({ ...registered, ...options }));
  const { identityProviderUrl, upstream } = sandbox;
  const gate = stack.use(openUpstreamGate(upstream.url));
  const startGateway = () =>
    startGatewayProcess({
      // Its cookies are not Secure then, because WebKitGTK takes no Secure cookie over http.
      NODE_ENV: '',
      HOST: 'localhost',
      PORT: String(port + 2),
      UPSTREAM_URL: `http://127.0.0.1:${gate.port}`,
      IDP_URL: identityProviderUrl,
      IDP_CLIENT_ID: clientId,
      IDP_REDIRECT_URI: redirectUri,
      ALLOWED_ORIGINS: studioUrl,
    });
  let gateway = await startGateway();
  stack.defer(() => gateway[Symbol.asyncDispose]());
  const network = stack.use(await openNetwork(port, port + 2));
  const restartGateway = async () => {
    await gateway[Symbol.asyncDispose]();
    gateway = await startGateway();
  };
  const authorizationEndpoint = `${identityProviderUrl}/oauth/authorize`;
  const identityProvider = { issuer: identityProviderUrl, authorizationEndpoint, ...client };
  const studio = await startStudio({
    port: port + 1,
    config: { gatewayUrl, identityProvider, pieces: PIECE_IDS },
  });
  stack.defer(() => studio.stop());

  const running = stack.move();
  return {
    studioUrl,
    /** As the browser sees it. */
    gatewayUrl,
    /** Between the browser and the gateway. */
    network,
    /** Between the gateway and the upstream. */
    gate,
    upstream,
    /** Kills the gateway, and starts it again. */
    restartGateway: () => network.restart(restartGateway),
    /** What a page posts to the gateway for a person who has gone through the identity provider's form. */
    async grant(name: string) {
      const { code, codeVerifier } = await signInThroughForm({ identityProviderUrl, ...client, name });
      return { code, code_verifier: codeVerifier };
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
