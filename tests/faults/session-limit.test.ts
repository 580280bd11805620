import { describe, expect, it } from 'bun:test';
import { SessionLimit } from '../../src/gateway/http/admission/session-limit.ts';
import { expectRefused, GENERATE, waiting } from '../support/long-calls.ts';
import {
  ACCESS_ONLY,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  storedTokens,
  type World,
} from '../support/world.ts';

const OTHER = 'svc_music_access=access-9; svc_music_refresh=refresh-9';

/** Generations in flight with these cookies. */
async function startBusy(world: World, cookies: readonly string[]) {
  const released = waiting(world, GENERATE.call);
  const generations = cookies.map((cookie) => GENERATE.send(world, { cookie }));
  await world.upstream.arrived(GENERATE.call, cookies.length);
  return {
    async end() {
      released.resolve();
      for (const response of await Promise.all(generations)) expect(await response.text()).toBe('done');
    },
  };
}

describe('a session with MAX_IN_FLIGHT_PER_SESSION calls in flight', () => {
  it.each([
    ['generate', '/api/music/generate'],
    ['the proxy', '/api/upstream/v1/library'],
    ['models', '/api/music/models'],
    ['session check', '/api/auth/session'],
  ])('gets 429 with Retry-After from %s, and other sessions are served', async (route, path) => {
    const send = (cookie: string) =>
      route === 'generate' ? GENERATE.send(world, { cookie }) : world.request(path, { cookie });
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '2' });
    const { end } = await startBusy(world, [SIGNED_IN, SIGNED_IN]);
    for (const call of ['GET /v1/library', 'GET /v1/models', 'GET /v1/me']) {
      world.upstream.on(call, () => Response.json({}));
    }
    const before = world.upstream.calls.length;
    await expectRefused(await send(SIGNED_IN), 429);
    expect(world.upstream.calls).toHaveLength(before);
    const other = send(OTHER);
    await end();
    expect((await other).status).toBe(200);
    expect((await send(SIGNED_IN)).status).toBe(200);
  });

  it.each([
    ['its access token with a made-up refresh token', 'svc_music_access=access-1; svc_music_refresh=made-up'],
    ['its access token alone', ACCESS_ONLY],
  ])('is known by %s', async (_, cookie) => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '2' });
    const { end } = await startBusy(world, [SIGNED_IN, SIGNED_IN]);
    await expectRefused(await GENERATE.send(world, { cookie }), 429);
    await end();
  });

  it('is known by its refresh token when it has no other', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '1' });
    const released = waiting(world, 'POST /v1/auth/refresh', () => new Response('', { status: 400 }));
    const first = GENERATE.send(world, { cookie: REFRESH_ONLY });
    await world.upstream.arrived('POST /v1/auth/refresh');
    await expectRefused(await GENERATE.send(world, { cookie: REFRESH_ONLY }), 429);
    released.resolve();
    expect((await first).status).toBe(401);
  });

  it('is known by the token that it was renewed with, so that made-up ones get no further', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '1' });
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
    );
    const released = Promise.withResolvers<void>();
    world.upstream.on(GENERATE.call, async ({ headers }) => {
      if (headers.get('authorization') !== 'Bearer access-2') return new Response('', { status: 401 });
      await released.promise;
      return new Response('done');
    });
    const cookieOf = (access: string) => `svc_music_access=${access}; svc_music_refresh=refresh-1`;
    const first = GENERATE.send(world, { cookie: cookieOf('made-up-1') });
    await world.upstream.arrived(GENERATE.call, 2);
    const second = await GENERATE.send(world, { cookie: cookieOf('made-up-2') });
    expect(storedTokens(second)['svc_music_access']).toBe('access-2');
    await expectRefused(second, 429);
    released.resolve();
    expect((await first).status).toBe(200);
    expect(world.admission.perSession.size).toBe(0);
  });
});

describe('a session without a limit on its calls', () => {
  it('has one on its generations, and one on its memory', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '0', MAX_GENERATIONS_PER_SESSION: '3' });
    const { end } = await startBusy(world, Array(3).fill(SIGNED_IN));
    await expectRefused(await GENERATE.send(world, { cookie: SIGNED_IN }), 429);
    world.upstream.on('GET /v1/models', () => Response.json({}));
    expect((await world.request('/api/music/models', { cookie: SIGNED_IN })).status).toBe(200);
    await end();
  });

  it('has none with 0 for both', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '0', MAX_GENERATIONS_PER_SESSION: '0' });
    const { end } = await startBusy(world, Array(120).fill(SIGNED_IN));
    await end();
  });
});

it('remembers nothing of a session without calls in flight', async () => {
  await using world = startWorld();
  world.upstream.on('GET /v1/models', () => Response.json({}));
  for (let user = 0; user < 100; user++) {
    const cookie = `svc_music_access=access-${user}; svc_music_refresh=refresh-${user}`;
    expect((await world.request('/api/music/models', { cookie })).status).toBe(200);
  }
  expect(world.admission.perSession.size).toBe(0);
});

it('counts a call with its generation and its bytes for one session at a time', () => {
  const limit = new SessionLimit({ maxInFlightPerSession: 1, maxGenerationsPerSession: 1 });
  const call = { isGeneration: true, bodyBytes: 100 };
  const other = { isGeneration: false, bodyBytes: 7 };
  const before = limit.join('before', call);
  limit.join('before', other);
  const renewed = limit.move(before, 'renewed', call);
  expect(before).toMatchObject({ calls: 1, generations: 0, bytes: 7 });
  expect(renewed).toMatchObject({ calls: 1, generations: 1, bytes: 100 });
  // It does not refuse itself when the upstream gives the same access token again.
  expect(limit.move(renewed, 'renewed', call)).toBe(renewed);
  expect(limit.size).toBe(2);
});
