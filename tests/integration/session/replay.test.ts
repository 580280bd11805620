import { describe, expect, it, setSystemTime } from 'bun:test';
import { later } from '../../support/later.ts';
import { Rotation } from '../../support/rotating-upstream.ts';
import { TRACK } from '../../support/routes.ts';
import * as calls from '../../support/session-calls.ts';
import { envelopeMessage, expectCleared, startWorld, storedTokens, type World } from '../../support/world.ts';

const { checkSession, cookies, expectRefused, pair, REFRESH, refreshes } = calls;
const { reply, SIGN_IN, scriptSignIn, signIn, signOut, silence } = calls;

const MODELS = 'GET /v1/models';
const MUSIC = 'POST /v1/music';
const OTHER = { access_token: 'other-access', refresh_token: 'other-refresh' };
const TOO_LARGE = { ...pair(3), refresh_token: 'r'.repeat(5000) };

function startRotating() {
  const world = startWorld();
  /** The access tokens that the upstream accepts. */
  return Object.assign(world, { live: new Rotation(world.upstream).live });
}
type RotatingWorld = ReturnType<typeof startRotating>;

function session(world: World, generation: number): Promise<Response> {
  return checkSession(world, cookies(generation));
}

/** Refreshes so often that the tokens before are spent, and that a client has presented all but the newest. */
async function rotate(world: RotatingWorld, times: number): Promise<void> {
  for (let generation = 1; generation <= times; generation++) {
    world.live.clear();
    await session(world, generation);
  }
}

/** A models call in flight: after its refresh, the upstream has it again, and responds once it is released. */
async function startLong(world: RotatingWorld) {
  const release = Promise.withResolvers<void>();
  world.upstream.on(MODELS, async ({ headers }) => {
    if (headers.get('authorization') === 'Bearer access-1') return reply(401)();
    await release.promise;
    return Response.json({});
  });
  const response = world.request('/api/music/models', { cookie: cookies(1) });
  await world.upstream.arrived(MODELS, 2);
  return () => {
    release.resolve();
    return response;
  };
}

async function renewTooLarge(world: World): Promise<void> {
  world.upstream.on(REFRESH, reply(200, TOO_LARGE));
  const response = await session(world, 2);
  await expectRefused(response, 502, 'tokensTooLarge');
  // The header says that a refresh was made, and the browser has nothing of it.
  expect(response.headers.get('server-timing')).toBeNull();
  expect(world.log.join()).not.toContain('rrrr');
}

async function refuse(world: World): Promise<void> {
  world.upstream.on(REFRESH, reply(401));
  expectCleared(await session(world, 2));
}

// The laws of the replay, in every order of small plans: faults/refresh-model. Its time limits:
// unit/refresh-coordinator.test.ts. How a reuse is counted: telemetry/metrics.test.ts.
it('a spent refresh token goes to the upstream as a reuse 11 s after its successor was presented', async () => {
  await using world = startRotating();
  await rotate(world, 2);
  later(11);
  expectCleared(await session(world, 1));
  expect(world.upstream.last(REFRESH).body).toBe('{"refresh_token":"refresh-1"}');
  const reuse = { level: 'warn', refresh: 'rejected', refreshTokenReused: 'presented' };
  expect(await world.line({ status: 401 })).toMatchObject(reuse);
});

it('a clock that is set two minutes ahead signs nobody out', async () => {
  await using world = startRotating();
  await rotate(world, 1);
  setSystemTime(Date.now() + 120_000);
  expect(storedTokens(await session(world, 1))).toMatchObject({ svc_music_refresh: 'refresh-2' });
});

type Step = (world: RotatingWorld) => Promise<unknown>;
const nothing: Step = async () => {};
/** The next refresh is the reuse of a spent token, for which the upstream gives a pair. */
const reuse: Step = async (world) => {
  await rotate(world, 1);
  await session(world, 2);
  later(11);
  world.upstream.on(REFRESH, reply(200, pair(9)));
};
const endByHand: Step = (world) => signOut(world, cookies(2));
const replace: Step = (world) => signIn(world, undefined, { cookie: cookies(2) });

/** The upstream does not rotate the refresh token. */
const keepToken: Step = async ({ upstream }) => {
  let generation = 1;
  upstream.on(REFRESH, () =>
    Response.json({ ...pair(++generation), refresh_token: 'refresh-1', expires_in: 100 }),
  );
};
const refreshAgain: Step = (world) =>
  checkSession(world, 'svc_music_access=access-2; svc_music_refresh=refresh-1');

const NO_PAIR = [undefined, undefined];

// An access token that has expired lasts for a second, because 0 would delete its cookie.
it.each<[what: string, before: Step, meanwhile: Step, stored: (string | number | undefined)[]]>([
  ['the newest pair of the chain', nothing, (world) => session(world, 2), ['refresh-3', 1]],
  ['the newest access token of the same refresh token', keepToken, refreshAgain, ['refresh-1', 1]],
  ['no pair when the newest is too large', nothing, renewTooLarge, NO_PAIR],
  ['no pair when the session was signed out', nothing, endByHand, NO_PAIR],
  ['no pair when the upstream has ended the session', nothing, refuse, NO_PAIR],
  ['the pair of a reuse', reuse, nothing, ['refresh-9', 900]],
  ['no pair of a reuse whose session was signed out', reuse, endByHand, NO_PAIR],
  ['no pair of a reuse whose session a sign-in has replaced', reuse, replace, NO_PAIR],
])('a response long after its refresh brings %s', async (_, before, meanwhile, stored) => {
  await using world = startRotating();
  scriptSignIn(world, OTHER);
  await before(world);
  const release = await startLong(world);
  world.live.clear();
  await meanwhile(world);
  later(120);
  const response = await release();
  const [access, refresh] = response.headers.getSetCookie().map((line) => Bun.Cookie.parse(line));
  expect([response.status, refresh?.value, access?.maxAge]).toEqual([200, ...stored]);
  expect(response.headers.get('server-timing')).toBe(stored === NO_PAIR ? null : 'refresh');
});

it('a call whose 401 comes after a refresh gets its pair, though its refresh token is the same', async () => {
  await using world = startRotating();
  await keepToken(world);
  const late = Promise.withResolvers<void>();
  world.upstream.on(MODELS, async ({ headers }) => {
    await late.promise;
    return reply(headers.get('authorization') === 'Bearer access-2' ? 200 : 401)();
  });
  const models = world.request('/api/music/models', { cookie: cookies(1) });
  await world.upstream.arrived(MODELS);
  const check = await session(world, 1);
  late.resolve();
  for (const response of [check, await models]) {
    const stored = { svc_music_access: 'access-2', svc_music_refresh: 'refresh-1' };
    expect(storedTokens(response)).toEqual(stored);
  }
  expect([(await models).status, refreshes(world)]).toEqual([200, 1]);
});

describe('a sign-in with the cookies of another session', () => {
  it('leaves that session when its client has gone, and so keeps the former cookies', async () => {
    await using world = startRotating();
    scriptSignIn(world, OTHER);
    const late = Promise.withResolvers<Response>();
    world.upstream.on(SIGN_IN, () => late.promise).on(MODELS, silence);
    const client = new AbortController();
    const options = { cookie: cookies(1), signal: client.signal };
    const left = [signIn(world, undefined, options), world.request('/api/music/models', options)];
    for (const call of [SIGN_IN, MODELS]) await world.upstream.arrived(call);
    client.abort();
    await Promise.allSettled(left);
    await world.line({ clientGone: 'waiting', method: 'GET' });
    late.resolve(Response.json(OTHER));
    await world.line({ clientGone: 'waiting', method: 'POST' });
    expect(storedTokens(await session(world, 1))['svc_music_refresh']).toBe('refresh-2');
  });

  it.each([
    [401, cookies(1), 2],
    [500, cookies(1), 2],
    [401, 'svc_music_refresh=refresh-1', 1],
  ])(
    'ends that one here: a generation whose error, a %d, is late sets no cookies, with %s',
    async (status, cookie, calls) => {
      await using world = startWorld({ TIMEOUT_READ_MS: '60000' });
      const release = Promise.withResolvers<void>();
      async function* text() {
        yield '{"message":"';
        await release.promise;
        yield 'late"}';
      }
      world.upstream.on(REFRESH, reply(200, pair(2))).on(MUSIC, ({ headers }) => {
        const isFirst = headers.get('authorization') === 'Bearer access-1';
        return new Response(text(), { status: isFirst ? 401 : status });
      });
      scriptSignIn(world, OTHER);
      const generation = world.request('/api/music/generate', { cookie, json: TRACK });
      // The refresh does not wait for the text of the first 401.
      await world.upstream.arrived(MUSIC, calls);
      await world.roundTrip();
      await signIn(world, undefined, { cookie });
      release.resolve();
      const response = await generation;
      expect(await envelopeMessage(response, status)).toContain('late');
      expect(response.headers.getSetCookie()).toEqual([]);
    },
  );
});
