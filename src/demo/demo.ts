/** `bun run demo` runs the gateway, the sandbox behind it, and the Studio, all on this machine. */

import { createGateway } from '../gateway/gateway.ts';
import { parseSettings } from '../gateway/settings/settings.ts';
import { openLog } from '../gateway/telemetry/logger.ts';
import {
  DEMO_CLIENT_ID,
  type DemoAddresses,
  demoAddresses,
  demoCommand,
  type WebApp,
} from './demo-addresses.ts';
import { PIECE_IDS } from './sandbox/music-api/public-pieces.ts';
import { type Sandbox, startSandbox } from './sandbox/sandbox.ts';
import { startStudio } from './studio-server.ts';

async function main(): Promise<void> {
  const addresses = demoAddresses();
  const { studioOrigin, redirectUri, ownPages } = addresses;
  const webApps: readonly WebApp[] = [{ origin: studioOrigin, redirectUri }, ...ownPages];
  const sandbox = await startSandbox({
    clientId: DEMO_CLIENT_ID,
    redirectUris: webApps.map((each) => each.redirectUri),
    identityProviderPort: addresses.identityProviderPort,
    upstreamPort: addresses.upstreamPort,
    accessTokenSeconds: Number(process.env['DEMO_ACCESS_TOKEN_SECONDS'] || 60),
  });
  const gateway = await startGateway(sandbox, addresses, webApps);
  const studio = await startStudio({
    port: addresses.studioPort,
    config: {
      gatewayUrl: addresses.gatewayUrl,
      identityProvider: {
        issuer: sandbox.identityProviderUrl,
        authorizationEndpoint: `${sandbox.identityProviderUrl}/oauth/authorize`,
        clientId: DEMO_CLIENT_ID,
        redirectUri,
      },
      pieces: PIECE_IDS,
    },
  });
  console.log(`
Music Gateway demo

  studio              ${studio.url}
  gateway             ${addresses.gatewayUrl}
  identity provider   ${sandbox.identityProviderUrl}
  upstream API        ${sandbox.upstream.url}

To watch an automatic tour, run this in another terminal:

  ${demoCommand('tour')}

It signs in, uploads a recording, generates a track from it, plays and publishes it, waits a minute for the access token
to expire, and signs out.

To use it yourself, open the studio in a browser:

  ${studio.url}

${aboutOwnPages(ownPages)}

Ctrl-C stops the demo. Its accounts and tracks are only in its memory: they live until it ends.
`);
  const stop = async () => {
    await Promise.all([studio.stop(), gateway.stop(true), sandbox.stop()]);
    process.exit(0);
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}

function aboutOwnPages(ownPages: readonly WebApp[]): string {
  if (!ownPages.length) return 'A page of your own can use it too: src/client/README.md begins with one.';
  const lines = ownPages.map(
    ({ origin, redirectUri }) => `  ${origin}   with the redirect URI ${redirectUri}`,
  );
  return `Pages of your own can use it too, as the client ${DEMO_CLIENT_ID}:\n\n${lines.join('\n')}`;
}

async function startGateway(
  sandbox: Sandbox,
  { gatewayPort: port, cookiePrefix: prefix }: DemoAddresses,
  webApps: readonly WebApp[],
) {
  const outcome = parseSettings({
    UPSTREAM_URL: sandbox.upstream.url,
    IDP_URL: sandbox.identityProviderUrl,
    IDP_CLIENT_ID: DEMO_CLIENT_ID,
    IDP_REDIRECT_URI: webApps.map(({ redirectUri }) => redirectUri).join(','),
    ALLOWED_ORIGINS: webApps.map(({ origin }) => origin).join(','),
    // For a page of one's own behind a development server that passes /api on.
    SAME_ORIGIN: 'true',
    LOG_LEVEL: 'warn',
  });
  if (!outcome.ok) throw new Error(outcome.problems.join('; '));
  const settings = { ...outcome.settings, cookies: { ...outcome.settings.cookies, prefix } };
  const { logger } = openLog(settings);
  return createGateway({ settings, logger }).listen({
    port,
    hostname: 'localhost',
  });
}

function problem(error: unknown): string {
  if (error instanceof RangeError) return error.message;
  if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
  const [port] = /\d+/.exec(error.message) ?? [];
  return `Port ${port} is taken. Stop the program that uses it, or put another before the command, such as PORT=6175`;
}

try {
  await main();
} catch (error) {
  console.error(problem(error));
  process.exit(1);
}
