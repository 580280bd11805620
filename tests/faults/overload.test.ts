import { describe, expect, it } from 'bun:test';
import { ACCESS_ONLY, envelopeMessage, startWorld, type World } from '../support/world.ts';

const TRACK = { model: 'm', prompt: 'p', music_length_ms: 3000 };

const LONG_CALLS: [name: string, call: string, send: (world: World) => Promise<Response>][] = [
  [
    'generate',
    'POST /v1/music',
    (world) => world.request('/api/music/generate', { cookie: ACCESS_ONLY, json: TRACK }),
  ],
  ['the proxy', 'GET /v1/slow', (world) => world.request('/api/upstream/v1/slow', { cookie: ACCESS_ONLY })],
  ['public playback', 'GET /v1/music/public/1', (world) => world.request('/api/upstream/v1/music/public/1')],
];

describe.each(LONG_CALLS)('%s beyond MAX_HELD_REQUESTS', (_name, call, send) => {
  it('answers 503 with Retry-After and Proxy-Status at once, forwards nothing, and takes the next when one is done', async () => {
    await using world = startWorld({ MAX_HELD_REQUESTS: '2' });
    const release = Promise.withResolvers<void>();
    world.upstream.on(call, () => release.promise.then(() => new Response('done')));
    const held = [send(world), send(world)];
    await world.upstream.arrived(call, 2);

    const refused = await send(world);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(refused.headers.get('proxy-status')).toBe('music-gateway; error=connection_limit_reached');
    expect(refused.headers.get('access-control-allow-origin')).toBe('http://studio.test');
    expect(await envelopeMessage(refused, 503)).toContain('Too many requests');
    expect(world.upstream.calls).toEqual([call, call]);

    release.resolve();
    for (const response of await Promise.all(held)) expect(await response.text()).toBe('done');
    expect((await send(world)).status).toBe(200);
  });

  it('leaves health, session check, models, sign-in and sign-out alone', async () => {
    await using world = startWorld({ MAX_HELD_REQUESTS: '1' });
    const release = Promise.withResolvers<void>();
    world.upstream.on(call, () => release.promise.then(() => new Response('done')));
    world.upstream.on('GET /v1/me', () => Response.json({}));
    world.upstream.on('GET /v1/models', () => Response.json({}));
    world.upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    world.upstream.on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token: 'r' }));
    const held = send(world);
    await world.upstream.arrived(call);
    const others = await Promise.all([
      world.request('/api/health'),
      world.request('/api/auth/session', { cookie: ACCESS_ONLY }),
      world.request('/api/music/models', { cookie: ACCESS_ONLY }),
      world.request('/api/auth/idp', { json: { code: 'c', code_verifier: 'v'.repeat(43) } }),
      world.request('/api/auth/logout', { method: 'POST' }),
    ]);
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    release.resolve();
    await held;
  });
});

describe('a body that is not at its end', () => {
  it('counts as held, and no longer once its client has gone', async () => {
    await using world = startWorld({ MAX_HELD_REQUESTS: '1' });
    const cancelled = Promise.withResolvers<void>();
    world.upstream.on(
      'GET /v1/slow',
      () =>
        new Response(
          new ReadableStream({
            start: (controller) => controller.enqueue(new Uint8Array(10)),
            cancel: () => cancelled.resolve(),
          }),
        ),
    );
    const client = new AbortController();
    const options = { cookie: ACCESS_ONLY, signal: client.signal };
    const streaming = await world.request('/api/upstream/v1/slow', options);
    await streaming.body?.getReader().read();
    await envelopeMessage(await world.request('/api/upstream/v1/slow', { cookie: ACCESS_ONLY }), 503);
    client.abort();
    await cancelled.promise;
    const next = await world.request('/api/upstream/v1/slow', { cookie: ACCESS_ONLY });
    expect(next.status).toBe(200);
    await next.body?.cancel();
  });
});
