/** The demo's addresses. The gateway listens on PORT, by default 4175; the other ports are derived from it. */

export interface DemoAddresses {
  readonly gatewayPort: number;
  readonly identityProviderPort: number;
  readonly upstreamPort: number;
  readonly studioPort: number;
  readonly gatewayUrl: string;
  /** Begins the names of its cookies, because all gateways on localhost share their cookies, whatever their ports. */
  readonly cookiePrefix: string;
  readonly identityProviderUrl: string;
  /** It is on the gateway's host, so that the gateway's cookies are same-site for the Studio's page. */
  readonly studioOrigin: string;
  readonly redirectUri: string;
  /** From DEMO_ORIGINS: the user's own. */
  readonly ownPages: readonly WebApp[];
}

export interface WebApp {
  readonly origin: string;
  /** The origin's root, because a page without a router has no other path. */
  readonly redirectUri: string;
}

export const DEMO_CLIENT_ID = 'music-studio';

const DEFAULT_PORT = 4175;
const STUDIO_OFFSET = 5;
const LAST_PORT = 65_535 - STUDIO_OFFSET;

/** @throws RangeError when PORT leaves no room for the other ports, or a page of DEMO_ORIGINS could not use the gateway */
export function demoAddresses(): DemoAddresses {
  const port = Number(process.env['PORT'] || DEFAULT_PORT);
  if (!Number.isInteger(port) || port < 1 || port > LAST_PORT) {
    throw new RangeError(`PORT must be a whole number from 1 to ${LAST_PORT}`);
  }
  const studioOrigin = originAt(port + STUDIO_OFFSET);
  return {
    gatewayPort: port,
    identityProviderPort: port + 1,
    upstreamPort: port + 2,
    studioPort: port + STUDIO_OFFSET,
    gatewayUrl: originAt(port),
    cookiePrefix: `demo-${port}-`,
    identityProviderUrl: `http://127.0.0.1:${port + 1}`,
    studioOrigin,
    redirectUri: `${studioOrigin}/callback`,
    ownPages: readOwnPages([port, port + 1, port + 2, port + STUDIO_OFFSET]),
  };
}

function originAt(port: number): string {
  return `http://localhost:${port}`;
}

function readOwnPages(takenPorts: readonly number[]): WebApp[] {
  const taken = takenPorts.map(originAt);
  const entries = (process.env['DEMO_ORIGINS'] ?? '').split(',').map((entry) => entry.trim());
  return [...new Set(entries.filter(Boolean))].map((entry) => {
    const url = URL.parse(entry);
    if (url?.protocol !== 'http:' || url.hostname !== 'localhost') {
      throw new RangeError(
        `DEMO_ORIGINS: "${entry}" must be an origin like http://localhost:5173. ` +
          'From a page on another site, browsers do not send the cookies of the gateway',
      );
    }
    if (url.origin !== entry) {
      throw new RangeError(`DEMO_ORIGINS: "${entry}" must be written as a browser sends it: ${url.origin}`);
    }
    if (taken.includes(entry)) {
      throw new RangeError(
        `DEMO_ORIGINS: ${entry} is an address of the demo itself. Serve your page on another port`,
      );
    }
    return { origin: entry, redirectUri: `${entry}/` };
  });
}

/** The command line that runs a script against this demo. It uses npx because bun may not be on the PATH. */
export function demoCommand(script: string): string {
  const port = process.env['PORT'];
  return `${port ? `PORT=${port} ` : ''}npx --yes bun@${Bun.version} run ${script}`;
}
