import { afterAll, beforeAll, expect, it } from 'bun:test';
import { startHttp2Proxy } from '../../support/http2-proxy.ts';
import { ROUTES, scriptRoutes } from '../../support/routes.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { request } from '../../support/world.ts';

const world = sharedWorld();
scriptRoutes(world);
let proxy: Awaited<ReturnType<typeof startHttp2Proxy>>;
beforeAll(async () => {
  proxy = await startHttp2Proxy();
});
afterAll(() => proxy[Symbol.asyncDispose]());

// With chunks of every kind, and without a proxy: request-bodies.test.ts.
it.each(ROUTES)(
  '$name is the same behind a proxy that speaks HTTP/2 and sends chunks',
  async ({ path, options }) => {
    const outcomeOf = async (sending: Promise<Response>) => {
      world.upstream.received.length = 0;
      const response = await sending;
      const received = world.upstream.received.map(({ method, target, body }) => ({ method, target, body }));
      return { status: response.status, body: await response.text(), received };
    };
    const direct = await outcomeOf(world.request(path, options));
    expect(direct.status).toBe(200);
    const headers = { host: `127.0.0.1:${world.port}` };
    const init = { ...options, headers, protocol: 'http2', tls: { rejectUnauthorized: false } } as const;
    // The second one uses the proxy's connection again.
    for (let times = 0; times < 2; times++)
      expect(await outcomeOf(request(proxy.url + path, init))).toEqual(direct);
  },
);
