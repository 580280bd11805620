import { expect, it } from 'bun:test';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { RawConnection } from '../../support/raw-http.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { SharedUpstream } from '../../support/rotating-upstream.ts';
import { BUFFERED, GENERATE, PUBLIC, proxied, SIGN_IN_ROUTE } from '../../support/routes.ts';
import { LOGOUT } from '../../support/session-calls.ts';
import { request, SIGNED_IN, testSettings } from '../../support/world.ts';

const SIGN_OUT = {
  path: '/api/auth/logout',
  options: { method: 'POST', cookie: SIGNED_IN },
  calls: [LOGOUT],
};
const ROUTES = [GENERATE, PUBLIC, proxied('GET'), SIGN_IN_ROUTE, ...BUFFERED, SIGN_OUT];
// Each deadline alone is too short to meet the idle timeout of 60 s, so that the gateway would leave it on. A call with
// the wait for another instance's refresh, its own and its repetition, or with the wait for its first byte, is not.
const LIMITS = {
  ...{ TIMEOUT_READ_MS: '13000', TIMEOUT_SIGN_IN_MS: '28000', TIMEOUT_STREAM_MS: '50000' },
  ...{ TIMEOUT_LOGOUT_MS: '20000', SIGN_OUT_REVOKES: 'true' },
};

it("Bun's idle timeout does not cut a client that waits for the upstream, on any route", async () => {
  await using upstream = new SharedUpstream();
  const released = Promise.withResolvers<void>();
  const calls = ROUTES.map((route) => route.calls[0] ?? '');
  for (const call of calls) upstream.on(call, () => released.promise.then(() => new Response('body')));
  const addresses = { UPSTREAM_URL: upstream.upstreamUrl, IDP_URL: upstream.identityProviderUrl };
  const settings = testSettings({ ...addresses, ...LIMITS });
  const gateway = createGateway({ settings, logger: recordLog().logger });
  gateway.listen({ port: 0, hostname: '127.0.0.1', idleTimeout: 1 });
  const port = gateway.server?.port ?? 0;
  const waiting = ROUTES.map(({ path, options }) => request(`http://127.0.0.1:${port}${path}`, options));
  for (const call of calls) await upstream.arrived(call);

  // The gateway cuts a connection that began later, once it has been served.
  const idle = new RawConnection(port);
  await idle.send('GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n');
  await idle.closed;

  released.resolve();
  // The identity provider's response has no token.
  const statuses = (await Promise.all(waiting)).map(({ status }) => status);
  expect(statuses).toEqual([200, 200, 200, 401, 200, 200, 200]);
  await gateway.stop(true);
});
