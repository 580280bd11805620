/** A client in front of a gateway process and the sandbox, with a network between them that breaks. */

import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { composeTrack } from '../../../src/demo/sandbox/audio/composition.ts';
import { renderWav, wavSize } from '../../../src/demo/sandbox/audio/wav.ts';
import { signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { openNetwork } from '../../support/breakable-network.ts';
import { eventually } from '../../support/eventually.ts';
import { freePorts } from '../../support/free-ports.ts';
import { isUp } from '../../support/is-up.ts';
import { postJson, SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';
import { openUpstreamGate } from '../../support/upstream-gate.ts';

const ORIGIN = 'http://localhost:5173';
const BALANCE = Type.Object({ balance: Type.Number() });
const BALANCE_AT_FIRST = 100;

/** Ten seconds, for ten credits. */
export const ORDER = { model: 'sandbox-music-1', prompt: 'Waves under a pier', music_length_ms: 10_000 };
export const TRACK_BYTES = wavSize(ORDER.music_length_ms);

export type RecoveryWorld = Awaited<ReturnType<typeof openRecoveryWorld>>;

/** @param pace of a generation, as a multiple of playback speed; the creation cannot be read before it is over */
export async function openRecoveryWorld({ pace = 20 } = {}) {
  await using stack = new AsyncDisposableStack();
  const port = await freePorts(2);
  const sandbox = await startTestSandbox({
    pace,
    startingBalance: BALANCE_AT_FIRST,
    accessTokenSeconds: 3_600,
  });
  stack.defer(() => sandbox.stop());
  const gate = stack.use(openUpstreamGate(sandbox.upstream.url));
  const settings = {
    PORT: String(port + 1),
    HOST: 'localhost',
    UPSTREAM_URL: `http://127.0.0.1:${gate.port}`,
    IDP_URL: sandbox.identityProviderUrl,
    IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
    IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
    ALLOWED_ORIGINS: ORIGIN,
  };
  let gateway = startGateway(settings);
  const killGateway = async () => {
    const running = await gateway;
    running.kill('SIGKILL');
    await running.exited;
  };
  stack.defer(killGateway);
  await gateway;
  const network = stack.use(await openNetwork(port, port + 1));
  const baseUrl = `http://localhost:${port}`;
  const headers = { origin: ORIGIN, cookie: await signIn(sandbox.identityProviderUrl, baseUrl) };
  const sent: { readonly path: string; readonly headers: Readonly<Record<string, string>> }[] = [];
  const client = createGatewayClient({
    baseUrl,
    fetch: (url, init) => {
      const all = { ...Object.fromEntries(new Headers(init.headers)), ...headers };
      sent.push({ path: new URL(url).pathname, headers: all });
      // A connection that is kept alive would make it a matter of luck which request meets a break.
      return fetch(url, { ...init, headers: all, keepalive: false });
    },
  });
  const running = stack.move();
  return {
    client,
    gate,
    network,
    /** The requests of the client. */
    sent,
    async signalGateway(signal: NodeJS.Signals) {
      (await gateway).kill(signal);
    },
    async restartGateway() {
      // Assigned at once, so that a test that fails meanwhile ends the new gateway too.
      gateway = killGateway().then(() => startGateway(settings));
      await gateway;
    },
    /** How many tracks there are, and what they have cost. */
    async account() {
      const { balance } = Value.Parse(BALANCE, await client.upstreamData('/v1/billing/balance'));
      return { creations: sandbox.upstream.counts().generations, credits: BALANCE_AT_FIRST - balance };
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

async function startGateway(settings: Readonly<Record<string, string>>) {
  const gateway = Bun.spawn([process.execPath, 'src/index.ts'], {
    cwd: new URL('../../..', import.meta.url).pathname,
    env: { NODE_ENV: 'production', ...settings },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
  });
  await eventually(() => isUp(`http://localhost:${settings['PORT']}`), 'the gateway');
  return gateway;
}

/** Returns the session cookies. */
async function signIn(identityProviderUrl: string, baseUrl: string): Promise<string> {
  const { code, codeVerifier } = await signInThroughForm({
    ...SANDBOX_CLIENT,
    identityProviderUrl,
    name: 'Ada',
  });
  const body = { code, code_verifier: codeVerifier };
  const response = await postJson(`${baseUrl}/api/auth/idp`, body, { origin: ORIGIN });
  return response.headers
    .getSetCookie()
    .map((header) => header.split(';', 1)[0])
    .join('; ');
}

/** The SHA-256 of the audio that the sandbox composes for the order. */
export function undisturbedHash(): string {
  const { music_length_ms: lengthMs, model, prompt } = ORDER;
  const audio = renderWav(composeTrack({ model, prompt, lengthMs }), 0, TRACK_BYTES);
  return new Bun.CryptoHasher('sha256').update(audio).digest('hex');
}
