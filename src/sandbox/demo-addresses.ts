/** Where a demo listens: four ports in a row of which PORT, or 4175, is the gateway's. */

export interface DemoAddresses {
  readonly gatewayPort: number;
  readonly identityProviderPort: number;
  readonly upstreamPort: number;
  readonly gatewayUrl: string;
  readonly identityProviderUrl: string;
  /** The studio's origin; on the gateway's host, so that its cookies are same-site. */
  readonly studioOrigin: string;
  readonly redirectUri: string;
}

export const DEMO_CLIENT_ID = 'music-studio';

export function demoAddresses(port = Number(process.env['PORT'] || 4175)): DemoAddresses {
  const studioOrigin = `http://localhost:${port + 5}`;
  return {
    gatewayPort: port,
    identityProviderPort: port + 1,
    upstreamPort: port + 2,
    gatewayUrl: `http://localhost:${port}`,
    identityProviderUrl: `http://127.0.0.1:${port + 1}`,
    studioOrigin,
    redirectUri: `${studioOrigin}/callback`,
  };
}
