/** The demo's addresses. The gateway listens on PORT, by default 4175; the other ports are derived from it. */

export interface DemoAddresses {
  readonly gatewayPort: number;
  readonly identityProviderPort: number;
  readonly upstreamPort: number;
  readonly studioPort: number;
  readonly gatewayUrl: string;
  readonly identityProviderUrl: string;
  /** It is on the gateway's host, so that the gateway's cookies are same-site for the Studio's page. */
  readonly studioOrigin: string;
  readonly redirectUri: string;
}

export const DEMO_CLIENT_ID = 'music-studio';

const DEFAULT_PORT = 4175;
const STUDIO_OFFSET = 5;
const LAST_PORT = 65_535 - STUDIO_OFFSET;

/** @throws RangeError when PORT is not a whole number, or leaves no room for the ports after it */
export function demoAddresses(): DemoAddresses {
  const port = Number(process.env['PORT'] || DEFAULT_PORT);
  if (!Number.isInteger(port) || port < 1 || port > LAST_PORT) {
    throw new RangeError(`PORT must be a whole number from 1 to ${LAST_PORT}`);
  }
  const studioOrigin = `http://localhost:${port + STUDIO_OFFSET}`;
  return {
    gatewayPort: port,
    identityProviderPort: port + 1,
    upstreamPort: port + 2,
    studioPort: port + STUDIO_OFFSET,
    gatewayUrl: `http://localhost:${port}`,
    identityProviderUrl: `http://127.0.0.1:${port + 1}`,
    studioOrigin,
    redirectUri: `${studioOrigin}/callback`,
  };
}

/** The command line that runs a script against this demo. It uses npx because bun may not be on the PATH. */
export function demoCommand(script: string): string {
  const port = process.env['PORT'];
  return `${port ? `PORT=${port} ` : ''}npx --yes bun@${Bun.version} run ${script}`;
}
