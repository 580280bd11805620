import { describe, expect, it } from 'bun:test';
import { SessionLimit } from '../../src/gateway/http/admission/session-limit.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  type World,
} from '../support/world.ts';

const TRACK = { model: 'm', prompt: 'p', music_length_ms: 3000 };
const OTHER = 'svc_music_access=access-9; svc_music_refresh=refresh-9';

function generate(world: World, cookie: string): Promise<Response> {
  return world.request('/api/music/generate', { cookie, json: TRACK });
}

/** One session with as many generations in flight as it may have. */
async function busy(world: World, cookies: readonly string[]) {
  const released = Promise.withResolvers<void>();
  world.upstream.on('POST /v1/music', () => released.promise.then(() => new Response('audio')));
  const generations = cookies.map((cookie) => generate(world, cookie));
  await world.upstream.arrived('POST /v1/music', cookies.length);
  return {
    async end() {
      released.resolve();
      for (const response of await Promise.all(generations)) expect(await response.text()).toBe('audio');
    },
  };
}

describe('a session with MAX_IN_FLIGHT_PER_SESSION calls in flight', () => {
  const CALLS: [name: string, send: (world: World, cookie: string) => Promise<Response>][] = [
    ['generate', generate],
    ['the proxy', (world, cookie) => world.request('/api/upstream/v1/library', { cookie })],
    ['models', (world, cookie) => world.request('/api/music/models', { cookie })],
    ['session check', (world, cookie) => world.request('/api/auth/session', { cookie })],
  ];

  it.each(CALLS)('gets 429 with Retry-After from %s, and other sessions are served', async (_, send) => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '2' });
    const { end } = await busy(world, [SIGNED_IN, SIGNED_IN]);
    for (const call of ['GET /v1/library', 'GET /v1/models', 'GET /v1/me']) {
      world.upstream.on(call, () => Response.json({}));
    }
    const before = world.upstream.calls.length;
    const refused = await send(world, SIGNED_IN);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(await envelopeMessage(refused, 429)).toContain('Your session has too many requests in flight');
    expect(world.upstream.calls).toHaveLength(before);
    const other = send(world, OTHER);
    await end();
    expect((await other).status).toBe(200);
    expect((await send(world, SIGNED_IN)).status).toBe(200);
  });

  it.each([
    ['its access token with a made-up refresh token', 'svc_music_access=access-1; svc_music_refresh=made-up'],
    ['its access token alone', ACCESS_ONLY],
    ['its refresh token alone', REFRESH_ONLY],
  ])('is known by %s', async (_, cookie) => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '2' });
    const { end } = await busy(world, [SIGNED_IN, SIGNED_IN]);
    await envelopeMessage(await generate(world, cookie), 429);
    await end();
  });

  it('is the same session with each pair that it was renewed with', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '2' });
    const { end } = await busy(world, ['svc_music_access=access-1; svc_music_refresh=refresh-1']);
    let generation = 1;
    world.upstream.on('POST /v1/auth/refresh', () => {
      generation++;
      return Response.json({ access_token: `access-${generation}`, refresh_token: `refresh-${generation}` });
    });
    // Each check is refused once, so that it renews the session.
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === `Bearer access-${generation}` && generation > 1
        ? Response.json({})
        : new Response('', { status: 401 }),
    );
    await world.request('/api/auth/session', { cookie: SIGNED_IN });
    await world.request('/api/auth/session', { cookie: 'svc_music_access=old; svc_music_refresh=refresh-2' });
    const { end: endSecond } = await busy(world, ['svc_music_access=access-2; svc_music_refresh=made-up']);
    for (const number of [1, 2, 3]) {
      const cookie = `svc_music_access=access-${number}; svc_music_refresh=refresh-${number}`;
      await envelopeMessage(await generate(world, cookie), 429);
    }
    await endSecond();
    await end();
    expect(world.admission.perSession.size).toBe(0);
  });

  it('has no limit of its own with 0', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '0' });
    const { end } = await busy(world, Array(120).fill(SIGNED_IN));
    expect(world.admission.perSession.size).toBe(0);
    await end();
  });
});

describe('two sessions whose tokens come together', () => {
  it('are one, with all that either has in flight and was renewed with', () => {
    const limit = new SessionLimit(3, 3);
    const first = limit.enter({ accessToken: 'a1', refreshToken: 'r1' });
    const second = limit.enter({ accessToken: 'a2', refreshToken: 'r2' });
    first.addPair({ accessToken: 'a1b', refreshToken: 'r1b' });
    second.addPair({ accessToken: 'a2b', refreshToken: 'r2b' });
    const both = limit.enter({ accessToken: 'a1', refreshToken: 'r2' });
    for (const token of ['1', '2', '1b', '2b']) {
      expect(() => limit.refuseIfFull({ accessToken: `a${token}`, refreshToken: undefined })).toThrow();
      expect(() => limit.refuseIfFull({ accessToken: undefined, refreshToken: `r${token}` })).toThrow();
    }
    for (const place of [second, both, first]) {
      place.release();
      expect(() => limit.refuseIfFull({ accessToken: 'a2b', refreshToken: 'r1b' })).not.toThrow();
    }
    expect(limit.size).toBe(0);
  });
});

describe('the memory of the session limit', () => {
  it('holds nothing of a session without calls in flight', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/models', () => Response.json({}));
    for (let user = 0; user < 100; user++) {
      const cookie = `svc_music_access=access-${user}; svc_music_refresh=refresh-${user}`;
      expect((await world.request('/api/music/models', { cookie })).status).toBe(200);
    }
    expect(world.admission.perSession.size).toBe(0);
  });

  it('is bounded for a session that is renewed again and again while a call is in flight', async () => {
    await using world = startWorld();
    const { perSession } = world.admission;
    const first = perSession.enter({ accessToken: 'a0', refreshToken: 'r0' });
    for (let pair = 0; pair < 1000; pair++) {
      const place = perSession.enter({ accessToken: `a${pair}`, refreshToken: `r${pair}` });
      place.addPair({ accessToken: `a${pair + 1}`, refreshToken: `r${pair + 1}` });
      place.release();
    }
    expect(perSession.size).toBeLessThan(500);
    first.release();
    expect(perSession.size).toBe(0);
  });
});
