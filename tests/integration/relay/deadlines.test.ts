import { describe, expect, it, type Mock, spyOn } from 'bun:test';
import net from 'node:net';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { messages } from '../../../src/gateway/http/messages.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { eventually } from '../../support/eventually.ts';
import { recordLog } from '../../support/recorded-log.ts';
import { SharedUpstream } from '../../support/rotating-upstream.ts';
import { BUFFERED, GENERATE, PUBLIC, SIGN_IN_ROUTE, TRACK } from '../../support/routes.ts';
import { CLOSED } from '../../support/session-calls.ts';
import { FIRST_PIECE, startTrackUpstream } from '../../support/track-upstream.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  REFRESH_ONLY,
  type RequestOptions,
  request,
  startWorld,
  testSettings,
} from '../../support/world.ts';

/** A response whose headers come at once and whose body never ends. */
function endlessBody(): Response {
  return new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('{')) }));
}

function never(): Promise<Response> {
  return new Promise(() => {});
}

// The deadline of the headers, on each route: every-route.test.ts.
describe('the deadline of a response that is read whole', () => {
  const REFRESHED = { path: '/api/auth/session', options: { cookie: REFRESH_ONLY } };
  const SIGN_IN = { ...SIGN_IN_ROUTE, setting: 'TIMEOUT_SIGN_IN_MS' };
  const READS = BUFFERED.map((route) => ({ ...route, setting: 'TIMEOUT_READ_MS' }));

  it.each([
    ...READS.map((read) => ({ ...read, call: read.calls.join(), respond: endlessBody })),
    { ...SIGN_IN, call: 'POST /oauth/token', respond: endlessBody },
    { ...SIGN_IN, call: 'POST /v1/auth/idp', respond: never },
    { ...SIGN_IN, call: 'POST /v1/auth/idp', respond: endlessBody },
    { ...SIGN_IN, ...REFRESHED, call: 'POST /v1/auth/refresh', respond: endlessBody },
  ])('covers all of the response to $call', async ({ path, options, call, respond, setting }) => {
    await using world = startWorld({ [setting]: '500' });
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on(call, respond);
    const response = await world.request(path, options);
    expect(await envelopeMessage(response, 502)).toMatch(/took too long|cannot be reached/);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls.at(-1)).toBe(call);
    expect(world.log).toEqual([expect.stringContaining('TimeoutError')]);
  });
});

describe('the deadline of a generation', () => {
  it('covers the wait for the first byte, after a head that came at once', async () => {
    await using upstream = await startTrackUpstream();
    await using world = startWorld({ UPSTREAM_URL: upstream.url, TIMEOUT_STREAM_MS: '300' });
    const ordered = world.request(GENERATE.path, GENERATE.options);
    await upstream.arrived;
    upstream.sendHead();
    const response = await ordered;
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=http_response_timeout');
    expect(await envelopeMessage(response, 502)).toBe(messages.en.generationTimeout);
    await upstream.closed;
    const line = await world.line({ route: GENERATE.path });
    expect(line).toMatchObject({ upstream: [{ call: 'music', outcome: 'http_response_timeout' }] });
    expect(line['durationMs']).toBeGreaterThanOrEqual(300);
    expect(world.admission.streams.inUse).toBe(0);
  });
});

const CONTENT = '/api/upstream/v1/music/creations/1/content';

describe('the deadline of a proxied call', () => {
  /** The timer that cuts off a body without a first byte, once the headers have arrived. */
  async function timerOfFirstByte(timers: Mock<typeof setTimeout>) {
    const isIt = ([, ms]: Parameters<typeof setTimeout>) => ms === 60_000;
    await eventually(() => timers.mock.calls.some(isIt), 'the timer of the first byte');
    return timers.mock.calls.find(isIt)?.[0];
  }

  it('ends with the headers', async () => {
    await using upstream = await startTrackUpstream();
    await using world = startWorld({ UPSTREAM_URL: upstream.url, TIMEOUT_STREAM_MS: '300' });
    const listening = world.request(CONTENT, { cookie: ACCESS_ONLY });
    await upstream.arrived;
    const sentAt = performance.now();
    upstream.sendHead();
    await eventually(() => performance.now() - sentAt > 400, 'the deadline to be over');
    upstream.send(FIRST_PIECE);
    const response = await listening;
    expect(response.status).toBe(200);
    await response.body?.cancel();
  });

  it('leaves 60 s for the first byte of the body', async () => {
    await using upstream = await startTrackUpstream();
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    using timers = spyOn(globalThis, 'setTimeout');
    const listening = world.request(CONTENT, { cookie: ACCESS_ONLY });
    await upstream.arrived;
    upstream.sendHead();
    (await timerOfFirstByte(timers))?.();
    const response = await listening;
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=http_response_timeout');
    expect(await envelopeMessage(response, 502)).toBe(messages.en.upstreamTimeout);
    await upstream.closed;
    expect(world.admission.streams.inUse).toBe(0);
  });
});

describe("Bun's own idle timeout", () => {
  it.each([
    ['a generation', GENERATE.path, { json: TRACK }],
    ['a proxied body', CONTENT, {}],
    ['public audio', '/api/upstream/v1/music/public/1/content', {}],
  ])('is off until the first byte of %s', async (_, path, options) => {
    await using upstream = await startTrackUpstream();
    // Proxied calls have 60 s more for their first byte, however short their deadline is.
    const short = path === GENERATE.path ? {} : { TIMEOUT_STREAM_MS: '5000', TIMEOUT_SIGN_IN_MS: '5000' };
    const settings = testSettings({ UPSTREAM_URL: upstream.url, IDP_URL: upstream.url, ...short });
    const gateway = createGateway({ settings, logger: recordLog().logger });
    gateway.listen({ port: 0, hostname: '127.0.0.1' });
    const { server } = gateway;
    if (!server) throw new Error('it does not listen');
    using timeout = spyOn(server, 'timeout');
    const seconds = () => timeout.mock.calls.map(([, each]) => each);
    const base = `http://127.0.0.1:${server.port}`;
    const ordered = request(base + path, { cookie: ACCESS_ONLY, ...options });
    await upstream.arrived;
    upstream.sendHead();
    for (let served = 0; served < 3; served++) await request(`${base}/api/health`, {});
    expect(seconds()).toEqual([0]);
    upstream.send(FIRST_PIECE);
    const response = await ordered;
    expect(response.status).toBe(200);
    expect(seconds()).toEqual([0, 60]);
    await response.body?.cancel();
    await gateway.stop(true);
  });

  it.each<[what: string, path: string, options: RequestOptions, environment: Environment]>([
    ['a call, a refresh and the call again', '/api/auth/session', {}, { TIMEOUT_READ_MS: '20000' }],
    [
      'a sign-out that may refresh',
      '/api/auth/logout',
      { method: 'POST' },
      { SIGN_OUT_REVOKES: 'true', TIMEOUT_LOGOUT_MS: '12000' },
    ],
  ])('is off during %s, which together may take longer', async (_, path, options, environment) => {
    const addresses = { UPSTREAM_URL: CLOSED, IDP_URL: CLOSED };
    const settings = testSettings({ ...addresses, ...environment });
    const gateway = createGateway({ settings, logger: recordLog().logger });
    gateway.listen({ port: 0, hostname: '127.0.0.1' });
    const { server } = gateway;
    if (!server) throw new Error('it does not listen');
    using timeout = spyOn(server, 'timeout');
    await request(`http://127.0.0.1:${server.port}${path}`, { cookie: REFRESH_ONLY, ...options });
    expect(timeout.mock.calls.map(([, seconds]) => seconds)).toEqual([0, 60]);
    await gateway.stop(true);
  });

  it('does not cut a client that waits for the upstream', async () => {
    await using upstream = new SharedUpstream();
    const released = Promise.withResolvers<void>();
    const routes = [GENERATE, PUBLIC, SIGN_IN_ROUTE, ...BUFFERED];
    const calls = routes.map((route) => route.calls[0] ?? '');
    for (const call of calls) upstream.on(call, () => released.promise.then(() => new Response('body')));
    const settings = testSettings({
      UPSTREAM_URL: upstream.upstreamUrl,
      IDP_URL: upstream.identityProviderUrl,
      // Shorter deadlines could not meet Bun's idle timeout of 60 s, so the gateway would not switch it off.
      TIMEOUT_READ_MS: '60000',
      TIMEOUT_SIGN_IN_MS: '60000',
    });
    const gateway = createGateway({ settings, logger: recordLog().logger });
    gateway.listen({ port: 0, hostname: '127.0.0.1', idleTimeout: 1 });
    const base = `http://127.0.0.1:${gateway.server?.port}`;
    const waiting = routes.map(({ path, options }) => request(base + path, options));
    for (const call of calls) await upstream.arrived(call);

    // A server with the same idle timeout and no such care cuts a connection that began later.
    await using careless = Object.assign(
      Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 1, fetch: never }),
      { [Symbol.asyncDispose]: () => careless.stop(true) },
    );
    const cut = Promise.withResolvers<void>();
    const socket = net.connect(careless.port ?? 0, '127.0.0.1', () =>
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
    );
    socket.on('close', () => cut.resolve()).on('error', () => {});
    await cut.promise;

    released.resolve();
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    // The identity provider's response has no token.
    expect(statuses).toEqual([200, 200, 401, 200, 200]);
    await gateway.stop(true);
  });
});
