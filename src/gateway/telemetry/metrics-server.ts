/** Serves the metrics on a separate port, which must not be public. */

import type { Registry } from 'prom-client';

export function serveMetrics(registry: Registry, address: { port: number; hostname: string }) {
  return Bun.serve({
    ...address,
    development: false,
    // By default, Bun lets a second gateway share the port without an error.
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
