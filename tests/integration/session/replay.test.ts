import { afterEach, describe, expect, it, setSystemTime } from 'bun:test';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../../support/metrics.ts';
import { Rotation } from '../../support/rotating-upstream.ts';
import {
  checkSession,
  cookies,
  LOGOUT,
  pair,
  REFRESH,
  refreshes,
  reply,
  scriptSignIn,
  signIn,
  signOut,
  TOKEN,
} from '../../support/session-calls.ts';
import { envelopeMessage, expectCleared, startWorld, storedTokens, type World } from '../../support/world.ts';

type RotatingWorld = ReturnType<typeof startRotating>;

function startRotating(environment: Environment = {}, metrics?: Metrics) {
  const world = startWorld(environment, metrics);
  /** The access tokens that the upstream accepts. */
  return Object.assign(world, { live: new Rotation(world.upstream, 100).live });
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

// The laws of the replay, in every order: faults/refresh-model.
describe('a request with a spent refresh token', () => {
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
    expect(refreshToken(await response)).toBe('refresh-3');
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
    ['the code is refused', (world) => world.upstream.on(TOKEN, reply(400))],
    ['a token is too large', (world) => scriptSignIn(world, { ...pair(2), refresh_token: 'r'.repeat(5000) })],
  ])('leaves that session as it is when it fails because %s', async (_, fail) => {
    await using world = startRotating();
    fail(world);
    await signIn(world, undefined, { cookie: cookies(1) });
    expect((await session(world, 1)).status).toBe(200);
  });
});

describe('a sign-in that gets the same refresh token again', () => {
  it.each<[what: string, end: (world: World) => Promise<unknown>, cookie: string]>([
    ['the refusal of that token', (world) => session(world, 1), ''],
    ['the sign-out before it', (world) => signOut(world, cookies(1)), ''],
    ['the end of the session whose cookies it came with', async () => {}, cookies(1)],
  ])('is not undone by %s', async (_, end, cookie) => {
    await using world = startRotating();
    scriptSignIn(world);
    world.upstream.on(REFRESH, reply(401));
    await end(world);
    await signIn(world, undefined, { cookie });
    world.upstream.on(REFRESH, reply(200, pair(2)));
    expect(refreshToken(await session(world, 1))).toBe('refresh-2');
  });
});

it('A sign-out discards a refresh in flight, and signs its pair out upstream', async () => {
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
