import { describe, expect, it } from 'bun:test';
import net from 'node:net';
import { STREAMED_BODY_BYTES } from '../../src/gateway/settings/memory.ts';
import { eventually } from '../support/eventually.ts';
import { rawRequest } from '../support/raw-http.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  expectCleared,
  ORIGIN,
  type RequestOptions,
  SIGNED_IN,
  startWorld,
  type World,
} from '../support/world.ts';

const TRACK = { model: 'm', prompt: 'p', music_length_ms: 3000 };
const CODE = { code: 'c', code_verifier: 'v'.repeat(43) };

interface LongCall {
  readonly name: string;
  readonly call: string;
  readonly send: (world: World, options?: RequestOptions) => Promise<Response>;
}

const GENERATE: LongCall = {
  name: 'generate',
  call: 'POST /v1/music',
  send: (world, options) =>
    world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: TRACK, ...options }),
};
const PROXY: LongCall = {
  name: 'the proxy',
  call: 'GET /v1/slow',
  send: (world, options) => world.request('/api/upstream/v1/slow', { cookie: ACCESS_ONLY, ...options }),
};
const PLAYBACK: LongCall = {
  name: 'public playback',
  call: 'GET /v1/music/public/1',
  send: (world, options) => world.request('/api/upstream/v1/music/public/1', options),
};

/** The calls wait until they are released, and then respond with what they are given. */
function waiting(world: World, call: string, respond: () => Response = () => new Response('done')) {
  const released = Promise.withResolvers<void>();
  world.upstream.on(call, () => released.promise.then(respond));
  return released;
}

/** A body that goes on for as long as someone reads it. */
function endless(onCancel = () => {}): Response {
  return new Response(
    new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024)),
      cancel: onCancel,
    }),
  );
}

function expectRefused(refused: Response): void {
  expect(refused.headers.get('retry-after')).toBe('5');
  expect(refused.headers.get('proxy-status')).toBe('music-gateway; error=connection_limit_reached');
  expect(refused.headers.get('access-control-allow-origin')).toBe(ORIGIN);
}

describe.each([GENERATE, PROXY, PLAYBACK])('$name beyond MAX_IN_FLIGHT_REQUESTS', ({ call, send }) => {
  it('gets 503 with Retry-After and Proxy-Status, forwards nothing, and is served when a call has ended', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '2' });
    const released = waiting(world, call);
    const inFlight = [send(world), send(world)];
    await world.upstream.arrived(call, 2);

    const refused = await send(world);
    expectRefused(refused);
    expect(await envelopeMessage(refused, 503)).toContain('Too many requests');
    expect(world.upstream.calls).toEqual([call, call]);

    released.resolve();
    for (const response of await Promise.all(inFlight)) expect(await response.text()).toBe('done');
    expect((await send(world)).status).toBe(200);
  });

  it('leaves health, session check, models, sign-in and sign-out alone', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const released = waiting(world, call);
    world.upstream.on('GET /v1/me', () => Response.json({}));
    world.upstream.on('GET /v1/models', () => Response.json({}));
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token: 'r' }));
    const inFlight = send(world);
    await world.upstream.arrived(call);
    const others = await Promise.all([
      world.request('/api/health'),
      world.request('/api/auth/session', { cookie: ACCESS_ONLY }),
      world.request('/api/music/models', { cookie: ACCESS_ONLY }),
      world.request('/api/auth/idp', { json: CODE }),
      world.request('/api/auth/logout', { method: 'POST' }),
    ]);
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    released.resolve();
    await inFlight;
  });
});

describe('a call whose client has gone', () => {
  it('is in flight until its upstream has responded, when it is a generation', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const released = waiting(world, GENERATE.call);
    const client = new AbortController();
    const left = GENERATE.send(world, { signal: client.signal }).catch(() => {});
    await world.upstream.arrived(GENERATE.call);
    client.abort();
    await left;
    // The gateway has heard of it when a later request has been served.
    await world.request('/api/health');
    await envelopeMessage(await GENERATE.send(world), 503);
    released.resolve();
    await eventually(() => !world.admission.streams.inUse, 'the calls to end');
    expect((await GENERATE.send(world)).status).toBe(200);
  });

  it('is in flight until its body is given up', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    const cancelled = Promise.withResolvers<void>();
    world.upstream.on(PROXY.call, () => endless(cancelled.resolve));
    const client = new AbortController();
    const streaming = await PROXY.send(world, { signal: client.signal });
    await streaming.body?.getReader().read();
    await envelopeMessage(await PROXY.send(world), 503);
    client.abort();
    await cancelled.promise;
    const next = await PROXY.send(world);
    expect(next.status).toBe(200);
    await next.body?.cancel();
  });
});

describe('request bodies that do not come to their end', () => {
  it('take no place from anybody', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '1' });
    world.upstream.on(GENERATE.call, () => new Response('audio'));
    const head = `POST /api/auth/idp HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nContent-Length: 100\r\n\r\n{`;
    const sockets = Array.from({ length: 20 }, () => net.connect(world.port, '127.0.0.1'));
    for (const socket of sockets) socket.on('error', () => {}).write(head);
    await eventually(
      () => world.admission.requestBodies.usedBytes >= sockets.length * 16 * 1024,
      'the bodies',
    );
    expect((await GENERATE.send(world)).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await eventually(() => !world.admission.requestBodies.usedBytes, 'the budget to be free');
  });
});

describe('one pool that is full', () => {
  it('lets sign-out clear the cookies, although the upstream does not hear of it', async () => {
    await using world = startWorld();
    const { signOuts } = world.admission;
    while (signOuts.inUse < signOuts.limit) signOuts.take();
    const response = await world.request('/api/auth/logout', { method: 'POST', cookie: SIGNED_IN });
    expect(response.status).toBe(200);
    expectCleared(response);
    expect(world.upstream.calls).toEqual([]);
  });

  it('leaves session checks and refreshes alone: sign-ins at a slow identity provider', async () => {
    await using world = startWorld();
    const { identityProvider } = world.admission;
    const released = waiting(world, 'POST /oauth/token', () => new Response('', { status: 400 }));
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === 'Bearer a2' ? Response.json({}) : new Response('', { status: 401 }),
    );
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'a2', refresh_token: 'r2' }),
    );
    const signIn = world.request('/api/auth/idp', { json: CODE });
    await world.upstream.arrived('POST /oauth/token');
    const fill = Array.from({ length: identityProvider.limit - 1 }, () => identityProvider.take());
    const refused = await world.request('/api/auth/idp', { json: CODE });
    expectRefused(refused);
    await envelopeMessage(refused, 503);
    const check = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(check.status).toBe(200);
    for (const release of fill) release();
    released.resolve();
    expect((await signIn).status).toBe(400);
    expect(identityProvider.inUse).toBe(0);
  });

  it.each(['/api/auth/session', '/api/music/models'])('refuses what it is for: %s', async (path) => {
    await using world = startWorld();
    const { reads } = world.admission;
    while (reads.inUse < reads.limit) reads.take();
    const refused = await world.request(path, { cookie: ACCESS_ONLY });
    expectRefused(refused);
    await envelopeMessage(refused, 503);
    expect(world.upstream.calls).toEqual([]);
    expect(world.admission.perSession.size).toBe(0);
  });

  it('refuses a sign-in before its body is read', async () => {
    await using world = startWorld();
    const { identityProvider } = world.admission;
    while (identityProvider.inUse < identityProvider.limit) identityProvider.take();
    const head = `POST /api/auth/idp HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nConnection: close\r\n`;
    const { status } = await rawRequest(world.port, `${head}Content-Length: 100\r\n\r\n{`);
    expect(status).toBe(503);
  });

  it('refuses a sign-in before its code is spent', async () => {
    await using world = startWorld();
    const { sessions } = world.admission;
    while (sessions.inUse < sessions.limit) sessions.take();
    await envelopeMessage(await world.request('/api/auth/idp', { json: CODE }), 503);
    expect(world.upstream.calls).toEqual([]);
  });

  it('signs nobody out: a refresh without a place leaves the cookies as they are', async () => {
    await using world = startWorld();
    const { sessions } = world.admission;
    while (sessions.inUse < sessions.limit) sessions.take();
    world.upstream.on('GET /v1/me', () => new Response('', { status: 401 }));
    const check = await world.request('/api/auth/session', { cookie: SIGNED_IN });
    expect(check.status).toBe(401);
    expectRefused(check);
    expect(check.headers.getSetCookie()).toEqual([]);
  });
});

describe('public playback', () => {
  it('leaves a quarter of MAX_IN_FLIGHT_REQUESTS to users', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_REQUESTS: '4' });
    const { streams } = world.admission;
    for (let taken = 0; taken < 3; taken++) streams.take();
    world.upstream.on(GENERATE.call, () => new Response('audio'));
    await envelopeMessage(await PLAYBACK.send(world), 503);
    expect((await GENERATE.send(world)).status).toBe(200);
  });

  it('has places of its own for what is about a track', async () => {
    await using world = startWorld();
    const { publicDetails } = world.admission;
    const released = waiting(world, PLAYBACK.call);
    const playing = PLAYBACK.send(world);
    await world.upstream.arrived(PLAYBACK.call);
    expect(publicDetails.inUse).toBe(1);
    while (publicDetails.inUse < publicDetails.limit) publicDetails.take();
    expectRefused(await PLAYBACK.send(world));
    released.resolve();
    expect((await playing).status).toBe(200);
    await eventually(() => publicDetails.inUse < publicDetails.limit, 'a free place');
    await eventually(() => !world.admission.streams.inUse, 'the calls to end');
  });
});

describe('a large body of session check or models', () => {
  const LARGE = JSON.stringify({ text: 'x'.repeat(100_000) });
  it.each([
    ['declared', () => new Response(LARGE)],
    ['in chunks', () => new Response(new Blob([LARGE]).stream())],
  ])('needs a place among the streamed bodies: %s', async (_, respond) => {
    await using world = startWorld({ MAX_STREAMED_BODIES: '4' });
    const { streamedBodies } = world.admission;
    world.upstream.on('GET /v1/models', respond).on('GET /v1/me', () => Response.json({}));
    const models = () => world.request('/api/music/models', { cookie: ACCESS_ONLY });
    expect(await (await models()).text()).toBe(LARGE);
    await eventually(() => !streamedBodies.inUse, 'the bodies to be sent');
    for (let taken = 0; taken < 3; taken++) streamedBodies.take();
    expectRefused(await models());
    const check = await world.request('/api/auth/session', { cookie: ACCESS_ONLY });
    expect(check.status).toBe(200);
    expect(world.admission.reads.inUse).toBe(0);
  });

  it('needs as many as its size is worth', async () => {
    await using world = startWorld({ MAX_STREAMED_BODIES: '4' });
    const { streamedBodies } = world.admission;
    world.upstream.on('GET /v1/models', () => new Response('x'.repeat(3 * STREAMED_BODY_BYTES)));
    const models = () => world.request('/api/music/models', { cookie: ACCESS_ONLY });
    expect(await (await models()).text()).toHaveLength(3 * STREAMED_BODY_BYTES);
    await eventually(() => !streamedBodies.inUse, 'the bodies to be sent');
    streamedBodies.take();
    expectRefused(await models());
    expect(streamedBodies.inUse).toBe(1);
  });
});

describe('one session', () => {
  it('streams a quarter of MAX_STREAMED_BODIES, and orders generations all the same', async () => {
    await using world = startWorld({ MAX_STREAMED_BODIES: '20' });
    world.upstream.on(PROXY.call, () => endless());
    const tracks = await Promise.all(Array.from({ length: 5 }, () => PROXY.send(world)));
    expect(tracks.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const refused = await PROXY.send(world);
    expectRefused(refused);
    await envelopeMessage(refused, 429);
    world.upstream.on(GENERATE.call, () => new Response('audio'));
    expect((await GENERATE.send(world)).status).toBe(200);
    const other = await PROXY.send(world, { cookie: 'svc_music_access=other' });
    expect(other.status).toBe(200);
    for (const track of [...tracks, other]) await track.body?.cancel();
  });
});

describe('streamed bodies beyond MAX_STREAMED_BODIES', () => {
  /** With two of four places taken. */
  async function halfFull() {
    const world = startWorld({ MAX_STREAMED_BODIES: '4' });
    const { streamedBodies } = world.admission;
    streamedBodies.take();
    streamedBodies.take();
    world.upstream.on(PLAYBACK.call, () => endless()).on(PROXY.call, () => endless());
    return { world, streamedBodies };
  }

  it('are refused to strangers first', async () => {
    const { world } = await halfFull();
    await using _ = world;
    const refused = await world.request('/api/upstream/v1/music/public/1/content');
    expectRefused(refused);
    await envelopeMessage(refused, 503);
    expect(world.upstream.calls).toEqual([]);
    world.upstream.on(PLAYBACK.call, () => Response.json({ small: true }));
    expect((await PLAYBACK.send(world)).status).toBe(200);
    const track = await PROXY.send(world);
    expect(track.status).toBe(200);
    await track.body?.cancel();
  });

  it('are refused to GET next, and the upstream is given up', async () => {
    const { world, streamedBodies } = await halfFull();
    await using _ = world;
    streamedBodies.take();
    const cancelled = Promise.withResolvers<void>();
    world.upstream.on(PROXY.call, () => endless(cancelled.resolve));
    expectRefused(await PROXY.send(world));
    await cancelled.promise;
    expect(world.admission.streams.inUse).toBe(0);
    // What fits in one piece is not streamed.
    world.upstream.on(PROXY.call, () => Response.json({ small: true }));
    expect((await PROXY.send(world)).status).toBe(200);
  });

  it('are never refused when they are paid for, or when the upstream has changed something', async () => {
    const { world, streamedBodies } = await halfFull();
    await using _ = world;
    streamedBodies.take();
    world.upstream.on(GENERATE.call, () => {
      streamedBodies.take();
      return endless();
    });
    const generation = await GENERATE.send(world);
    expect(generation.status).toBe(200);
    world.upstream.on('POST /v1/slow', () => endless());
    const changed = await PROXY.send(world, { method: 'POST' });
    expect(changed.status).toBe(200);
    // Nothing has been paid for yet: the next order is refused.
    await envelopeMessage(await GENERATE.send(world), 503);
    await generation.body?.cancel();
    await changed.body?.cancel();
  });
});
