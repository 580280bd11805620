/** Asks a gateway for its health, on a connection of its own, so that one that takes no more is not up. */

export function isUp(gatewayUrl: string): Promise<boolean> {
  const options = { keepalive: false, tls: { rejectUnauthorized: false } };
  return fetch(`${gatewayUrl}/api/health`, options).then(
    ({ ok }) => ok,
    () => false,
  );
}
