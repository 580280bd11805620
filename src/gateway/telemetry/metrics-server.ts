/** Serves the metrics on a port of their own, which is not for the public. */

import type { Registry } from 'prom-client';

export function serveMetrics(registry: Registry, address: { port: number; hostname: string }) {
  return Bun.serve({
    ...address,
    development: false,
    // Unless told, Bun lets a second gateway share the port in silence.
    reusePort: false,
    routes: {
      '/metrics': {
        GET: async () =>
          new Response(await registry.metrics(), { headers: { 'content-type': registry.contentType } }),
      },
    },
    fetch: () => new Response('The metrics are at /metrics.\n', { status: 404 }),
  });
}
