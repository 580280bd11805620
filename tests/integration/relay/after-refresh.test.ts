import { describe, expect, it } from 'bun:test';
import { startRawUpstream } from '../../support/raw-upstream.ts';
import { PROXIED_PATH, PUBLIC } from '../../support/routes.ts';
import { ACCESS_ONLY, REFRESH_ONLY, SIGNED_IN, startWorld, storedTokens } from '../../support/world.ts';

const REFRESH = 'POST /v1/auth/refresh';
const NEW_PAIR = { access_token: 'access-2', refresh_token: 'refresh-2' };
const NEW_TOKENS = { svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' };

function startRenewing() {
  const world = startWorld();
  world.upstream.on(REFRESH, () => Response.json(NEW_PAIR));
  return world;
}

// Which calls are refreshed and repeated: the tests of the refresh.
describe('a response with renewed cookies', () => {
  it('is not kept by a cache, unlike the next one', async () => {
    await using world = startRenewing();
    const headers = { 'cache-control': 'public, max-age=3600', vary: 'Accept', 'x-ratelimit-used': '3' };
    world.upstream.on('GET /v1/library', () => new Response('x', { headers }));
    const renewed = await world.request(PROXIED_PATH, { cookie: REFRESH_ONLY });
    expect(storedTokens(renewed)).toEqual(NEW_TOKENS);
    const later = await world.request(PROXIED_PATH, { cookie: ACCESS_ONLY });
    expect(renewed.headers.get('cache-control')).toBe('no-store');
    expect(later.headers.get('cache-control')).toBe('public, max-age=3600');
    for (const response of [renewed, later]) {
      expect(response.headers.get('vary')).toBe('Origin, Cookie, Accept');
      expect(response.headers.get('access-control-expose-headers')).toContain('x-ratelimit-used');
    }
  });

  it('does not lose them when the connection of the 401 breaks during the refresh', async () => {
    let calls = 0;
    let first: { resetAndDestroy(): unknown } | undefined;
    await using upstream = await startRawUpstream((socket, request) => {
      const send = (body: string) =>
        socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
      if (request.startsWith(REFRESH)) {
        first?.resetAndDestroy();
        setImmediate(() => send(JSON.stringify(NEW_PAIR)));
      } else if (calls++ > 0) send('right');
      else {
        first = socket;
        socket.write('HTTP/1.1 401 Unauthorized\r\nContent-Length: 100000\r\n\r\npartial');
      }
    });
    await using world = startWorld({ UPSTREAM_URL: upstream.url });
    const response = await world.request(PROXIED_PATH, { cookie: SIGNED_IN });
    expect(await response.text()).toBe('right');
    expect(storedTokens(response)).toEqual(NEW_TOKENS);
  });
});

describe('a response whose session has a newer pair that no cookie can carry', () => {
  it('is given up at the upstream', async () => {
    await using world = startWorld();
    const pairs = [NEW_PAIR, { access_token: 'access-3', refresh_token: 'r'.repeat(4096) }];
    const released = Promise.withResolvers<void>();
    const cancelled = Promise.withResolvers<void>();
    const start = (controller: ReadableStreamDefaultController) => controller.enqueue('wait');
    world.upstream
      .on(REFRESH, () => Response.json(pairs.shift()))
      .on('GET /v1/me', () => new Response('', { status: 401 }))
      .on('GET /v1/library', ({ headers }) =>
        headers.get('authorization') === 'Bearer access-1'
          ? new Response('', { status: 401 })
          : released.promise.then(
              () => new Response(new ReadableStream({ start, cancel: () => cancelled.resolve() })),
            ),
      );
    const slow = world.request(PROXIED_PATH, { cookie: SIGNED_IN });
    await world.upstream.arrived('GET /v1/library', 2);
    await world.request('/api/auth/session', { cookie: 'svc_music_refresh=refresh-2' });
    released.resolve();
    expect((await slow).status).toBe(502);
    await cancelled.promise;
  });
});

describe('public playback', () => {
  it.each([SIGNED_IN, REFRESH_ONLY])('neither sends credentials nor refreshes: %s', async (cookie) => {
    await using world = startRenewing();
    const call = PUBLIC.calls.join();
    world.upstream.on(call, () => new Response('no', { status: 401, headers: { 'set-cookie': 'a=b' } }));
    const response = await world.request(PUBLIC.path, { cookie });
    expect(response.status).toBe(401);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get('vary')).toBe('Origin');
    expect(world.upstream.calls).toEqual([call]);
    expect(world.upstream.last(call).headers.has('authorization')).toBe(false);
  });
});
