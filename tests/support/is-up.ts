/** Asks a gateway for its health, on a connection of its own, so that one that takes no more is not up. */

export function isUp(gatewayUrl: string): Promise<boolean> {
  return fetch(`${gatewayUrl}/api/health`, { keepalive: false }).then(
    ({ ok }) => ok,
    () => false,
  );
}
