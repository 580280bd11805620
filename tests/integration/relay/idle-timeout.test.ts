import { expect, it, jest } from 'bun:test';
import { IDLE_TIMEOUT_SECONDS } from '../../../src/gateway/exchange/exchange.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { RawConnection } from '../../support/raw-http.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { BUFFERED, GENERATE, PUBLIC, proxied, SIGN_IN_ROUTE } from '../../support/routes.ts';
import { ScriptedUpstream } from '../../support/scripted-upstream.ts';
import { LOGOUT } from '../../support/session-calls.ts';
import { request, SIGNED_IN, testSettings } from '../../support/world.ts';

const SIGN_OUT = {
  path: '/api/auth/logout',
  options: { method: 'POST', cookie: SIGNED_IN },
  calls: [LOGOUT],
};
const ROUTES = [GENERATE, PUBLIC, proxied('GET'), SIGN_IN_ROUTE, ...BUFFERED, SIGN_OUT];

/** Whose bodies have begun when they stall. */
const BEGUN = [...GENERATE.calls, ...PUBLIC.calls];

it("Bun's idle timeout does not cut a client that waits for the upstream, on any route", async () => {
  await using stack = new AsyncDisposableStack();
  const upstream = stack.use(new ScriptedUpstream());
  const released = Promise.withResolvers<void>();
  const calls = ROUTES.map((route) => route.calls[0] ?? '');
  const stalledHead = () => released.promise.then(() => new Response('body'));
  const stalledBody = async function* () {
    yield 'bo';
    await released.promise;
    yield 'dy';
  };
  for (const call of calls)
    upstream.on(call, BEGUN.includes(call) ? () => new Response(stalledBody()) : stalledHead);
  const addresses = { UPSTREAM_URL: upstream.upstreamUrl, IDP_URL: upstream.identityProviderUrl };
  const settings = testSettings({ ...addresses, TIMEOUT_LOGOUT_MS: '20000' });
  jest.useFakeTimers();
  const gateway = createGateway({ settings, logger: recordLog().logger });
  // Bun cuts up to 4 s earlier, so one of 4 s could cut what begins.
  gateway.listen({ port: 0, hostname: '127.0.0.1', idleTimeout: 8 });
  stack.defer(async () => void (await gateway.stop(true)));
  const port = gateway.server?.port ?? 0;
  const waiting = ROUTES.map(async ({ path, options }) => {
    const response = await request(`http://127.0.0.1:${port}${path}`, options);
    return `${response.status} ${await response.text()}`;
  });
  for (const call of calls) await upstream.arrived(call);
  // The gateway looks after their connections six times in its idle timeout.
  jest.advanceTimersByTime((IDLE_TIMEOUT_SECONDS * 1000) / 6);

  // The gateway cuts a connection that began later, once it has been served.
  const idle = new RawConnection(port);
  idle.send('GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n');
  await idle.closed;

  released.resolve();
  const whole = '200 body';
  // The identity provider's response has no token.
  const refused = expect.stringMatching(/^401 /);
  expect(await Promise.all(waiting)).toEqual([whole, whole, whole, refused, whole, whole, '200 {"ok":true}']);
});
