import { describe, expect, it } from 'bun:test';
import { SessionLimit } from '../../src/gateway/http/admission/session-limit.ts';
import { expectRefused, GENERATE, waiting } from '../support/long-calls.ts';
import { ACCESS_ONLY, REFRESH_ONLY, SIGNED_IN, startWorld, type World } from '../support/world.ts';

const OTHER = 'svc_music_access=access-9; svc_music_refresh=refresh-9';

function cookieOf(access: string | number, refresh: string | number): string {
  return `svc_music_access=access-${access}; svc_music_refresh=refresh-${refresh}`;
}

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
    ['its refresh token alone', REFRESH_ONLY],
  ])('is known by %s', async (_, cookie) => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '2' });
    const { end } = await startBusy(world, [SIGNED_IN, SIGNED_IN]);
    await expectRefused(await GENERATE.send(world, { cookie }), 429);
    await end();
  });

  it('is the same session with each pair that it was renewed with', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '2' });
    const { end } = await startBusy(world, [SIGNED_IN]);
    let newest = 1;
    world.upstream.on('POST /v1/auth/refresh', () => {
      newest++;
      return Response.json({ access_token: `access-${newest}`, refresh_token: `refresh-${newest}` });
    });
    // Each check is refused once, so that it renews the session.
    world.upstream.on('GET /v1/me', ({ headers }) =>
      headers.get('authorization') === `Bearer access-${newest}` && newest > 1
        ? Response.json({})
        : new Response('', { status: 401 }),
    );
    await world.request('/api/auth/session', { cookie: SIGNED_IN });
    await world.request('/api/auth/session', { cookie: cookieOf('old', 2) });
    const { end: endSecond } = await startBusy(world, [cookieOf(2, 'made-up')]);
    for (const number of [1, 2, 3]) {
      await expectRefused(await GENERATE.send(world, { cookie: cookieOf(number, number) }), 429);
    }
    await endSecond();
    await end();
    expect(world.admission.perSession.size).toBe(0);
  });

  it('has no limit of its own with 0', async () => {
    await using world = startWorld({ MAX_IN_FLIGHT_PER_SESSION: '0' });
    const { end } = await startBusy(world, Array(120).fill(SIGNED_IN));
    expect(world.admission.perSession.size).toBe(0);
    await end();
  });
});

describe('the session limit', () => {
  const pair = (name: string) => ({ accessToken: `a${name}`, refreshToken: `r${name}` });

  it('takes two sessions whose tokens come together for one, with all that either has in flight', () => {
    const limit = new SessionLimit(3, 3);
    const [first, second] = [limit.enter(pair('1')), limit.enter(pair('2'))];
    first.addPair(pair('1b'));
    second.addPair(pair('2b'));
    const both = limit.enter({ accessToken: 'a1', refreshToken: 'r2' });
    for (const name of ['1', '2', '1b', '2b']) {
      const { accessToken, refreshToken } = pair(name);
      expect(() => limit.refuseIfFull({ accessToken, refreshToken: undefined })).toThrow();
      expect(() => limit.refuseIfFull({ accessToken: undefined, refreshToken })).toThrow();
    }
    for (const place of [second, both, first]) {
      place.release();
      expect(() => limit.refuseIfFull({ accessToken: 'a2b', refreshToken: 'r1b' })).not.toThrow();
    }
    expect(limit.size).toBe(0);
  });

  it('remembers nothing of a session without calls in flight', async () => {
    await using world = startWorld();
    world.upstream.on('GET /v1/models', () => Response.json({}));
    for (let user = 0; user < 100; user++) {
      const response = await world.request('/api/music/models', { cookie: cookieOf(user, user) });
      expect(response.status).toBe(200);
    }
    expect(world.admission.perSession.size).toBe(0);
  });

  it('is bounded for a session that is renewed again and again while a call is in flight', () => {
    const limit = new SessionLimit(100, 100);
    const first = limit.enter(pair('0'));
    for (let number = 0; number < 1000; number++) {
      const place = limit.enter(pair(`${number}`));
      place.addPair(pair(`${number + 1}`));
      place.release();
    }
    expect(limit.size).toBeLessThan(500);
    first.release();
    expect(limit.size).toBe(0);
  });
});
