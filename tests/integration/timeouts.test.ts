import { describe, expect, it, spyOn } from 'bun:test';
import net from 'node:net';
import { createGateway } from '../../src/gateway/gateway.ts';
import { messages } from '../../src/gateway/http/messages.ts';
import { recordLog } from '../support/recorded-log.ts';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { FIRST_PIECE, startTrackUpstream } from '../support/track-upstream.ts';
import { ACCESS_ONLY, envelopeMessage, ORIGIN, request, startWorld, testSettings } from '../support/world.ts';

const TRACK = { model: 'm', prompt: 'p', music_length_ms: 3000 };
const SIGN_IN = { code: 'c', code_verifier: 'v'.repeat(43) };

/** An answer whose headers come at once and whose body never ends. */
function endlessBody(): Response {
  return new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('{')) }));
}

function never(): Promise<Response> {
  return new Promise(() => {});
}

describe('the deadline of a read', () => {
  it.each([
    ['/api/auth/session', 'GET /v1/me'],
    ['/api/music/models', 'GET /v1/models'],
  ])('ends %s with 502 when the headers do not come', async (path, call) => {
    await using world = startWorld({ TIMEOUT_READ_MS: '50' });
    world.upstream.on(call, never);
    const response = await world.request(path, { cookie: ACCESS_ONLY });
    expect(await envelopeMessage(response, 502)).toContain('too long');
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  it.each([
    ['/api/auth/session', 'GET /v1/me'],
    ['/api/music/models', 'GET /v1/models'],
  ])('covers the body of %s', async (path, call) => {
    await using world = startWorld({ TIMEOUT_READ_MS: '500' });
    world.upstream.on(call, endlessBody);
    const response = await world.request(path, { cookie: ACCESS_ONLY });
    expect(await envelopeMessage(response, 502)).toContain('too long');
    expect(world.log).toEqual([expect.stringContaining('TimeoutError')]);
  });
});

describe('the deadline of sign-in', () => {
  it.each([
    ['headers', never],
    ['body', endlessBody],
  ])('covers the %s of the identity provider', async (_, answer) => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '50' });
    world.upstream.on('POST /oauth/token', answer);
    await envelopeMessage(await world.request('/api/auth/idp', { json: SIGN_IN }), 502);
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
  });

  it.each([
    ['headers', never],
    ['body', endlessBody],
  ])('covers the %s of the upstream sign-in', async (_, answer) => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '500' });
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', answer);
    await envelopeMessage(await world.request('/api/auth/idp', { json: SIGN_IN }), 502);
  });

  it('covers the body of a refresh', async () => {
    await using world = startWorld({ TIMEOUT_SIGN_IN_MS: '50' });
    world.upstream.on('POST /v1/auth/refresh', endlessBody);
    const response = await world.request('/api/auth/session', { cookie: 'svc_music_refresh=r' });
    await envelopeMessage(response, 502);
    expect(response.headers.getSetCookie()).toEqual([]);
  });
});

describe('the deadline of the proxy', () => {
  it.each(['GET', 'POST'])('ends a %s with 502 when the headers do not come', async (method) => {
    await using world = startWorld({ TIMEOUT_STREAM_MS: '50' });
    world.upstream.on(`${method} /v1/slow`, never);
    const response = await world.request('/api/upstream/v1/slow', { method, cookie: ACCESS_ONLY });
    expect(await envelopeMessage(response, 502)).toContain('too long');
    expect(world.upstream.calls).toEqual([`${method} /v1/slow`]);
  });
});

describe('the deadline of a generation', () => {
  it('covers the wait for the first byte, after a head that came at once', async () => {
    await using upstream = await startTrackUpstream();
    await using world = startWorld({ UPSTREAM_URL: upstream.url, TIMEOUT_STREAM_MS: '300' });
    const ordered = world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: TRACK });
    await upstream.arrived;
    upstream.sendHead();
    const response = await ordered;
    expect(response.headers.get('proxy-status')).toBe('music-gateway; error=http_response_timeout');
    expect(await envelopeMessage(response, 502)).toBe(messages.generationTimeout.en);
    await upstream.closed;
    const line = await world.line({ route: '/api/music/generate' });
    expect(line).toMatchObject({ upstream: [{ call: 'music', outcome: 'http_response_timeout' }] });
    expect(line['durationMs']).toBeGreaterThanOrEqual(300);
    expect(world.admission.streams.inUse).toBe(0);
  });
});

describe("Bun's own idle timeout", () => {
  it('is off until the first byte of a generation', async () => {
    await using upstream = await startTrackUpstream();
    const settings = testSettings({ UPSTREAM_URL: upstream.url, IDP_URL: upstream.url });
    const gateway = createGateway({ settings, logger: recordLog().logger });
    gateway.listen({ port: 0, hostname: '127.0.0.1' });
    const { server } = gateway;
    if (!server) throw new Error('it does not listen');
    using timeout = spyOn(server, 'timeout');
    const seconds = () => timeout.mock.calls.map(([, each]) => each);
    const base = `http://127.0.0.1:${server.port}`;
    const ordered = request(`${base}/api/music/generate`, { cookie: ACCESS_ONLY, json: TRACK });
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

  it('does not cut a client that waits for the upstream', async () => {
    await using upstream = Object.assign(new ScriptedUpstream(), {
      [Symbol.asyncDispose]: () => upstream.stop(),
    });
    const held = Promise.withResolvers<void>();
    const answer = () => held.promise.then(() => new Response('audio'));
    upstream.on('POST /v1/music', answer).on('GET /v1/me', answer);
    upstream.on('GET /v1/music/public/1', answer).on('POST /oauth/token', answer);
    const settings = testSettings({
      UPSTREAM_URL: upstream.upstreamUrl,
      IDP_URL: upstream.identityProviderUrl,
      // Longer than an idle timeout of theirs would be: shorter ones cannot meet it.
      TIMEOUT_READ_MS: '60000',
      TIMEOUT_SIGN_IN_MS: '60000',
    });
    const gateway = createGateway({ settings, logger: recordLog().logger });
    gateway.listen({ port: 0, hostname: '127.0.0.1', idleTimeout: 1 });
    const headers = { origin: ORIGIN, cookie: ACCESS_ONLY, 'content-type': 'application/json' };
    const base = `http://127.0.0.1:${gateway.server?.port}`;
    const generation = fetch(`${base}/api/music/generate`, {
      method: 'POST',
      headers,
      body: JSON.stringify(TRACK),
    });
    const session = fetch(`${base}/api/auth/session`, { headers });
    const playback = fetch(`${base}/api/upstream/v1/music/public/1`, { headers });
    const signIn = fetch(`${base}/api/auth/idp`, { method: 'POST', headers, body: JSON.stringify(SIGN_IN) });
    for (const call of ['POST /v1/music', 'GET /v1/me', 'GET /v1/music/public/1', 'POST /oauth/token']) {
      await upstream.arrived(call);
    }

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

    held.resolve();
    expect(await (await generation).text()).toBe('audio');
    expect(await (await session).text()).toBe('audio');
    expect(await (await playback).text()).toBe('audio');
    expect((await signIn).status).toBe(401);
    await gateway.stop(true);
  });
});
