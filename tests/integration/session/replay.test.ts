import { afterEach, describe, expect, it, setSystemTime } from 'bun:test';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../../support/metrics.ts';
import { Rotation } from '../../support/rotating-upstream.ts';
import {
  accept,
  checkSession,
  cookies,
  LOGOUT,
  ME,
  pair,
  REFRESH,
  refreshes,
  reply,
  SIGN_IN,
  scriptSignIn,
  signIn,
  signOut,
  TOKEN,
} from '../../support/session-calls.ts';
import { envelopeMessage, expectCleared, startWorld, storedTokens, type World } from '../../support/world.ts';

const EXPIRES_IN = 100;

type RotatingWorld = ReturnType<typeof startRotating>;

function startRotating(environment: Environment = {}, metrics?: Metrics) {
  const world = startWorld(environment, metrics);
  /** The access tokens that the upstream accepts. */
  return Object.assign(world, { live: new Rotation(world.upstream, EXPIRES_IN).live });
}

function session(world: World, generation: number): Promise<Response> {
  return checkSession(world, cookies(generation));
}

function refreshToken(response: Response): string | undefined {
  return storedTokens(response)['svc_music_refresh'];
}

async function rotateOnce(world: RotatingWorld): Promise<void> {
  await session(world, 1);
}

/** Refreshes twice, so that `refresh-1` and `refresh-2` are spent and a client has presented both. */
async function rotateTwice(world: RotatingWorld): Promise<void> {
  await rotateOnce(world);
  world.live.clear();
  await session(world, 2);
}

/** A models call in flight: the upstream has it, and responds to it once it is released. */
async function startLong(world: RotatingWorld, times: 1 | 2) {
  const release = Promise.withResolvers<void>();
  const isHeld = (token: string | null) => (token === 'Bearer access-1') === (times === 1);
  world.upstream.on('GET /v1/models', async ({ headers }) => {
    if (isHeld(headers.get('authorization'))) await release.promise;
    return headers.get('authorization') === 'Bearer access-1' ? reply(401)() : Response.json({});
  });
  const response = world.request('/api/music/models', { cookie: cookies(1) });
  await world.upstream.arrived('GET /v1/models', times);
  return { release: release.resolve, response };
}

function later(seconds: number): void {
  setSystemTime(Date.now() + seconds * 1000);
}
afterEach(() => void setSystemTime());

// When the client of the refreshing request disconnects: refresh.test.ts.
describe('a request with a spent refresh token', () => {
  it('gets the pair that it was exchanged for, with the rest of its life, without another refresh', async () => {
    await using world = startRotating();
    await session(world, 1);
    later(40);
    const late = await session(world, 1);
    expect(late.status).toBe(200);
    expect(storedTokens(late)).toEqual({ svc_music_access: 'access-2', svc_music_refresh: 'refresh-2' });
    expect(late.headers.get('server-timing')).toBe('refresh');
    const maxAge = Number(/Max-Age=(\d+)/.exec(late.headers.getSetCookie()[0] ?? '')?.[1]);
    expect(maxAge).toBeGreaterThan(EXPIRES_IN - 50);
    expect(maxAge).toBeLessThanOrEqual(EXPIRES_IN - 40);
    expect(refreshes(world)).toBe(1);
  });

  it('gets its pair for 10 s after the successor was presented, and then goes to the upstream', async () => {
    await using world = startRotating();
    await session(world, 1);
    await session(world, 2);
    later(9);
    expect(refreshToken(await session(world, 1))).toBe('refresh-2');
    expect(refreshes(world)).toBe(1);
    later(2);
    expectCleared(await session(world, 1));
    expect(world.upstream.last(REFRESH).body).toBe('{"refresh_token":"refresh-1"}');
    expect(refreshes(world)).toBe(2);
  });

  // Times are in whole milliseconds.
  it.each<[why: string, when: string, replay: string, seconds: number, rotate: typeof rotateTwice]>([
    ['presented', 'its successor was presented and renewed', '60', 0.002, rotateTwice],
    ['late', 'the replay window is over', '60', 61, rotateOnce],
    ['late', 'the replay window is off', '0', 0.002, rotateOnce],
  ])('goes to the upstream as a reuse that is %s when %s', async (why, _, replay, seconds, rotate) => {
    const metrics = new Metrics();
    await using world = startRotating({ REFRESH_REPLAY_SECONDS: replay }, metrics);
    await rotate(world);
    later(seconds);
    expectCleared(await session(world, 1));
    expect(world.upstream.last(REFRESH).body).toBe('{"refresh_token":"refresh-1"}');
    const line = await world.line({ refreshTokenReused: why });
    expect(line).toMatchObject({ level: 'warn', refresh: 'rejected', status: 401 });
    expect(world.lines.filter((each) => 'refreshTokenReused' in each)).toHaveLength(1);
    const samples = await samplesOf(metrics.registry);
    for (const each of ['presented', 'late']) {
      expect(samples.get(`refresh_token_reuses_total{why="${each}"}`)).toBe(each === why ? 1 : 0);
    }
  });

  it('gets what the upstream gives for a reuse, unless its session is signed out meanwhile', async () => {
    await using world = startRotating();
    await session(world, 1);
    await session(world, 2);
    later(11);
    // An upstream that does not detect the reuse.
    const renewed = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => renewed.promise).on(ME, accept('access-9'));
    const reusing = session(world, 1);
    await world.upstream.arrived(REFRESH, 2);
    await signOut(world, cookies(2));
    renewed.resolve(Response.json(pair(9)));
    await envelopeMessage(await reusing, 401);
    expect(world.upstream.last(LOGOUT).body).toBe('{"refresh_token":"refresh-9"}');
  });

  it('gets the newest pair if it arrived before the refresh, however late its first response is', async () => {
    await using world = startRotating();
    const early = await startLong(world, 1);
    later(1);
    await rotateTwice(world);
    later(90);
    early.release();
    const response = await early.response;
    expect(response.status).toBe(200);
    expect(refreshToken(response)).toBe('refresh-3');
    expect(refreshes(world)).toBe(2);
  });

  it.each([[[1]], [[1, 2]]])(
    'refreshes the successor once when its access token has expired, for all requests at once with %j',
    async (tokens) => {
      await using world = startRotating({ REFRESH_REPLAY_SECONDS: '600' });
      await session(world, 1);
      world.live.clear();
      later(EXPIRES_IN + 1);
      const responses = await Promise.all(
        Array.from({ length: 5 }, () => tokens)
          .flat()
          .map((token) => session(world, token)),
      );
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
      expect(new Set(responses.map(refreshToken))).toEqual(new Set(['refresh-3']));
      expect(refreshes(world)).toBe(2);
    },
  );

  it('is refreshed again when the upstream does not rotate refresh tokens', async () => {
    await using world = startRotating();
    let generation = 1;
    world.upstream.on(ME, (received) => accept(`access-${generation}`)(received));
    world.upstream.on(REFRESH, () => Response.json({ ...pair(++generation), refresh_token: 'refresh-1' }));
    await checkSession(world, 'svc_music_access=old; svc_music_refresh=refresh-1');
    generation++;
    const again = await checkSession(world, 'svc_music_access=access-2; svc_music_refresh=refresh-1');
    expect(again.status).toBe(200);
    expect(storedTokens(again)['svc_music_access']).toBe('access-4');
  });
});

describe('a request with a refused refresh token', () => {
  it('costs no further refresh for 30 s', async () => {
    await using world = startRotating();
    world.upstream.on(REFRESH, reply(401));
    for (const [seconds, sent] of [
      [0, 1],
      [29, 1],
      [2, 2],
    ] as const) {
      later(seconds);
      expectCleared(await session(world, 1));
      expect(refreshes(world)).toBe(sent);
    }
  });
});

describe('a response long after its refresh', () => {
  it('brings the newest pair of the chain, not the one of its own refresh', async () => {
    await using world = startRotating();
    const { release, response } = await startLong(world, 2);
    world.live.clear();
    await session(world, 2);
    later(120);
    release();
    expect((await response).status).toBe(200);
    const newest = { svc_music_access: 'access-3', svc_music_refresh: 'refresh-3' };
    expect(storedTokens(await response)).toEqual(newest);
    // Its access token has expired, and 0 would delete the cookie.
    expect((await response).headers.getSetCookie()[0]).toContain('; Max-Age=1;');
  });

  it('brings no older pair when the newest one is too large for a cookie', async () => {
    await using world = startRotating();
    const { release, response } = await startLong(world, 2);
    world.live.clear();
    world.upstream.on(REFRESH, reply(200, { ...pair(3), refresh_token: 'r'.repeat(5000) }));
    await envelopeMessage(await session(world, 2), 502);
    release();
    expect((await response).headers.getSetCookie()).toEqual([]);
  });

  it.each([
    ['', cookies(2), {}],
    [', minutes ago, with a token that does not rotate', cookies(1), { refresh_token: 'refresh-1' }],
  ])('brings no pair when the session was signed out meanwhile%s', async (_, cookie, change) => {
    await using world = startRotating();
    world.upstream.on(REFRESH, reply(200, { ...pair(2), ...change }));
    const { release, response } = await startLong(world, 2);
    await signOut(world, cookie);
    later(200);
    release();
    expect((await response).status).toBe(200);
    expect((await response).headers.getSetCookie()).toEqual([]);
    expect((await response).headers.get('server-timing')).toBeNull();
  });
});

describe('a sign-in with the cookies of another session', () => {
  it.each([
    ['a new pair', reply(200, pair(2))],
    ['a refusal', reply(401)],
  ])('ends that session here: its late response, to %s, sets no cookies', async (_, late) => {
    await using world = startRotating();
    const refresh = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => refresh.promise);
    scriptSignIn(world, { access_token: 'other-access', refresh_token: 'other-refresh' });
    const former = session(world, 1);
    await world.upstream.arrived(REFRESH);
    expect(refreshToken(await signIn(world, undefined, { cookie: cookies(1) }))).toBe('other-refresh');
    // The session ends in the gateway only.
    expect(world.upstream.calls).not.toContain(LOGOUT);
    refresh.resolve(late());
    // The client may have sent the second one before it had the new cookies, which it must not clear.
    for (const response of [await former, await session(world, 1)]) {
      await envelopeMessage(response, 401);
      expect(response.headers.getSetCookie()).toEqual([]);
    }
    later(11);
    expectCleared(await session(world, 1));
    expect(refreshes(world)).toBe(1);
  });

  it.each<[what: string, fail: (world: World) => unknown]>([
    ['because the code is refused', (world) => world.upstream.on(TOKEN, reply(400))],
    [
      'because a token is too large for a cookie',
      (world) => scriptSignIn(world, { access_token: 'a', refresh_token: 'r'.repeat(5000) }),
    ],
  ])('leaves that session as it is when it fails %s', async (_, fail) => {
    await using world = startRotating();
    fail(world);
    await signIn(world, undefined, { cookie: cookies(1) });
    expect((await session(world, 1)).status).toBe(200);
  });
});

describe('a sign-in that gets the same refresh token again', () => {
  it('is not undone by the refusal of that token before it', async () => {
    await using world = startRotating();
    scriptSignIn(world);
    world.upstream.on(REFRESH, reply(401));
    expectCleared(await session(world, 1));
    await signIn(world);
    world.upstream.on(REFRESH, reply(200, pair(2)));
    expect(refreshToken(await session(world, 1))).toBe('refresh-2');
  });

  it('is not undone by the end of the session whose cookies it came with', async () => {
    await using world = startRotating();
    scriptSignIn(world);
    await signIn(world, undefined, { cookie: cookies(1) });
    expect(refreshToken(await session(world, 1))).toBe('refresh-2');
  });

  it.each([false, true])(
    'is not undone by the sign-out before it, with a refresh in flight: %p',
    async (inFlight) => {
      await using world = startRotating();
      scriptSignIn(world);
      const refresh = Promise.withResolvers<Response>();
      if (inFlight) world.upstream.on(REFRESH, () => refresh.promise);
      const refreshing = inFlight ? session(world, 1) : undefined;
      if (inFlight) await world.upstream.arrived(REFRESH);
      await signOut(world, cookies(1));
      await signIn(world);
      refresh.resolve(Response.json(pair(2)));
      const response = await (refreshing ?? session(world, 1));
      expect(refreshToken(response)).toBe('refresh-2');
      expect(world.upstream.calls.filter((call) => call === LOGOUT)).toHaveLength(1);
      expect(world.upstream.calls).toContain(SIGN_IN);
    },
  );
});

describe('a sign-out', () => {
  it('discards a refresh in flight, and signs its pair out upstream', async () => {
    await using world = startRotating({ REFRESH_REPLAY_SECONDS: '0', TIMEOUT_STREAM_MS: '5000' });
    const refresh = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => refresh.promise);
    const refreshing = [session(world, 1), session(world, 1)];
    await world.upstream.arrived(REFRESH);
    // Requests that arrive in the same millisecond as the sign-out count as later.
    later(0.001);
    expectCleared(await signOut(world, cookies(1)));
    // As long as a refresh may take, and longer than its pair would be on record.
    later(15);
    refresh.resolve(Response.json({ access_token: 'late-access', refresh_token: 'late-refresh' }));
    for (const response of await Promise.all(refreshing)) {
      expect(await envelopeMessage(response, 401)).toContain('session has ended');
      // The sign-out has cleared them, and a sign-in may have set others since.
      expect(response.headers.getSetCookie()).toEqual([]);
    }
    const logout = world.upstream.last(LOGOUT);
    expect(logout.headers.get('authorization')).toBe('Bearer late-access');
    expect(logout.body).toBe('{"refresh_token":"late-refresh"}');
    const afterwards = await session(world, 1);
    await envelopeMessage(afterwards, 401);
    expectCleared(afterwards);
    expect(refreshes(world)).toBe(1);
  });

  it.each([1, 2, 3])('with token %i of the chain ends the replay of every one', async (presented) => {
    await using world = startRotating();
    await rotateTwice(world);
    await signOut(world, cookies(presented));
    expect(world.upstream.last(LOGOUT).body).toContain('refresh-3');
    world.live.clear();
    for (const generation of [presented, 3, 1]) {
      const response = await session(world, generation);
      await envelopeMessage(response, 401);
      if (generation >= presented) expectCleared(response);
    }
    expect(refreshes(world)).toBe(2);
  });

  it('ends the replay although only the refresh cookie is left', async () => {
    await using world = startRotating();
    const cookie = 'svc_music_refresh=refresh-1';
    await checkSession(world, cookie);
    await signOut(world, cookie);
    await envelopeMessage(await checkSession(world, cookie), 401);
  });
});
