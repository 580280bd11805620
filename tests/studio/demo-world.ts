/** The demo in this process: sandbox, gateway and Studio on free ports, with networks between them that can be broken. */

import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/demo/sandbox/sandbox.ts';
import { startStudio } from '../../src/demo/studio-server.ts';
import { signInThroughForm } from '../../src/demo/tour/sign-in-through-form.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { openUpstreamGate, type UpstreamGate } from '../deploy/proxies/upstream-gate.ts';
import { eventually } from '../support/eventually.ts';
import { freePorts } from '../support/free-ports.ts';
import { isUp } from '../support/is-up.ts';
import { recordLog } from '../support/recorded-log.ts';
import { postJson } from '../support/sandbox-account.ts';
import { testSettings } from '../support/world.ts';
import { type BreakableNetwork, openNetwork } from './breakable-network.ts';

const CLIENT_ID = 'music-studio';

export interface DemoWorld extends AsyncDisposable {
  readonly studioUrl: string;
  /** As the browser sees it. */
  readonly gatewayUrl: string;
  /** Between the browser and the gateway. */
  readonly network: BreakableNetwork;
  /** Between the gateway and the upstream; first comes the network, then the gate. */
  readonly upstreamNetwork: BreakableNetwork;
  readonly gate: UpstreamGate;
  readonly upstream: Sandbox['upstream'];
  readonly gateway: {
    /** Kills the gateway, which must be a process of its own, and starts it again. */
    restart(): Promise<void>;
  };
  /** Signs in without a browser, and returns the cookies that a browser would have then. */
  signIn(name: string): Promise<Bun.Cookie[]>;
}

export interface DemoWorldOptions extends Pick<SandboxOptions, 'startingBalance'> {
  /** Whether the gateway is a process of its own; by default, it is not. */
  readonly isGatewayProcess?: boolean;
  /** Further settings of the gateway. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Generation is as fast as possible; a test that needs it slow holds the audio back at the gate. */
export async function startDemoWorld({
  isGatewayProcess = false,
  environment = {},
  ...behaviour
}: DemoWorldOptions = {}): Promise<DemoWorld> {
  await using stack = new AsyncDisposableStack();
  const port = await freePorts(4);
  const gatewayUrl = `http://localhost:${port}`;
  const studioUrl = `http://localhost:${port + 1}`;
  const redirectUri = `${studioUrl}/callback`;

  const sandbox = await startSandbox({
    clientId: CLIENT_ID,
    redirectUris: [redirectUri],
    pace: Number.POSITIVE_INFINITY,
    ...behaviour,
  });
  stack.defer(() => sandbox.stop());
  const gate = stack.use(openUpstreamGate(sandbox.upstream.url));
  const upstreamNetwork = stack.use(await openNetwork(port + 3, gate.port));
  const settings = {
    PORT: String(port + 2),
    UPSTREAM_URL: `http://localhost:${port + 3}`,
    IDP_URL: sandbox.identityProviderUrl,
    IDP_CLIENT_ID: CLIENT_ID,
    IDP_REDIRECT_URI: redirectUri,
    ALLOWED_ORIGINS: studioUrl,
    ...environment,
  };
  const gateway = stack.use(await (isGatewayProcess ? startProcess(settings) : startHere(settings)));
  const network = stack.use(await openNetwork(port, port + 2));
  const { identityProviderUrl } = sandbox;
  const studio = await startStudio({
    port: port + 1,
    config: {
      gatewayUrl,
      identityProvider: {
        issuer: identityProviderUrl,
        authorizationEndpoint: `${identityProviderUrl}/oauth/authorize`,
        clientId: CLIENT_ID,
        redirectUri,
      },
    },
  });
  stack.defer(() => studio.stop());

  const running = stack.move();
  return {
    studioUrl,
    gatewayUrl,
    network,
    upstreamNetwork,
    gate,
    gateway,
    upstream: sandbox.upstream,
    async signIn(name) {
      const grant = await signInThroughForm({ identityProviderUrl, clientId: CLIENT_ID, redirectUri, name });
      const response = await postJson(
        `${gatewayUrl}/api/auth/idp`,
        { code: grant.code, code_verifier: grant.codeVerifier },
        { origin: studioUrl },
      );
      return response.headers.getSetCookie().map((header) => Bun.Cookie.parse(header));
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

type GatewayEnvironment = Readonly<Record<string, string>> & { readonly PORT: string };

async function startHere(environment: GatewayEnvironment) {
  const gateway = createGateway({ settings: testSettings(environment), logger: recordLog().logger });
  gateway.listen({ port: environment.PORT, hostname: 'localhost' });
  return {
    restart: () => Promise.reject(new Error('The gateway is no process of its own')),
    async [Symbol.asyncDispose]() {
      await gateway.stop(true);
    },
  };
}

async function startProcess(environment: GatewayEnvironment) {
  const spawn = () =>
    Bun.spawn([process.execPath, 'src/index.ts'], {
      cwd: new URL('../..', import.meta.url).pathname,
      env: { NODE_ENV: 'production', HOST: 'localhost', ...environment },
      stdio: ['ignore', 'ignore', 'ignore'],
    });
  let running = spawn();
  const kill = async () => {
    running.kill('SIGKILL');
    await running.exited;
  };
  const isReady = () => eventually(() => isUp(`http://localhost:${environment.PORT}`), 'the gateway');
  await isReady();
  return {
    async restart() {
      await kill();
      running = spawn();
      await isReady();
    },
    [Symbol.asyncDispose]: kill,
  };
}
