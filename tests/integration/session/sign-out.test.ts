import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { eventually } from '../../support/eventually.ts';
import { fill } from '../../support/long-calls.ts';
import {
  accept,
  CLOSED,
  LOGOUT,
  pair,
  REFRESH,
  reply,
  signOut,
  silence,
} from '../../support/session-calls.ts';
import {
  ACCESS_ONLY,
  envelopeMessage,
  expectCleared,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  type World,
} from '../../support/world.ts';

const MODELS = 'GET /v1/models';
const REFRESH_1 = '{"refresh_token":"refresh-1"}';
const REFRESH_2 = '{"refresh_token":"refresh-2"}';
const REFRESH_3 = '{"refresh_token":"refresh-3"}';

/** Asserts the only response that a sign-out has, whatever the upstream makes of it. */
async function expectSignedOut(response: Response): Promise<void> {
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toStartWith('application/json');
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.get('server-timing')).toBeNull();
  expect(await response.text()).toBe('{"ok":true}');
  expectCleared(response);
}

const models = (world: World, cookie: string) => world.request('/api/music/models', { cookie });

const WITHOUT_A_SESSION: [what: string, cookie: string | undefined][] = [
  ['no session cookie', undefined],
  ['only the access cookie', ACCESS_ONLY],
  ['a session cookie twice', `${SIGNED_IN}; ${SIGNED_IN}`],
  ['the refresh cookie twice', `${SIGNED_IN}; svc_music_refresh=refresh-2`],
];

describe('POST /api/auth/logout', () => {
  it('sends both tokens to the upstream once, and nothing else of the browser', async () => {
    await using world = startWorld();
    world.upstream.on(LOGOUT, reply(204));
    const options = { method: 'POST', cookie: SIGNED_IN, body: '{"refresh_token":"from-the-browser"}' };
    for (const _ of [1, 2]) await expectSignedOut(await world.request('/api/auth/logout', options));
    expect(world.upstream.calls).toEqual([LOGOUT]);
    const { headers, body } = world.upstream.last(LOGOUT);
    expect(headers.get('authorization')).toBe('Bearer access-1');
    expect(headers.get('accept')).toBe('application/json');
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('cookie')).toBeNull();
    expect(headers.get('origin')).toBeNull();
    expect(body).toBe(REFRESH_1);
  });

  it.each([...WITHOUT_A_SESSION, ['only the refresh cookie', REFRESH_ONLY]])(
    'with %s clears both cookies without a call to the upstream',
    async (_, cookie) => {
      await using world = startWorld();
      await expectSignedOut(await signOut(world, cookie));
      if (cookie === REFRESH_ONLY) await envelopeMessage(await models(world, cookie), 401);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  it.each([307, 401, 500])(
    'signs out here when the upstream responds %i, without a refresh, a redirect or another try',
    async (status) => {
      await using world = startWorld();
      const headers = { 'set-cookie': 'a=b', location: `${world.upstream.upstreamUrl}/v1/elsewhere` };
      world.upstream.on(LOGOUT, () => new Response('upstream text', { status, headers }));
      await expectSignedOut(await signOut(world, SIGNED_IN));
      expect(world.upstream.calls).toEqual([LOGOUT]);
    },
  );

  it.each<[what: string, environment: Environment, calls: string[]]>([
    ['cannot be reached', { UPSTREAM_URL: CLOSED }, []],
    ['is late', { TIMEOUT_LOGOUT_MS: '1000' }, [LOGOUT]],
    [
      'is late, also with SIGN_OUT_REVOKES',
      { TIMEOUT_LOGOUT_MS: '1000', SIGN_OUT_REVOKES: 'true' },
      [LOGOUT],
    ],
  ])('signs out here when the upstream %s', async (_, environment, calls) => {
    await using world = startWorld(environment);
    world.upstream.on(LOGOUT, silence);
    await expectSignedOut(await signOut(world, SIGNED_IN));
    expect(world.upstream.calls).toEqual(calls);
    expect(world.log.join()).not.toMatch(/access-1|refresh-1/);
  });
});

describe('POST /api/auth/logout with SIGN_OUT_REVOKES', () => {
  /** An upstream whose logout responds with these statuses, one after the other. */
  function startRevoking(logouts: number[] = [], environment: Environment = {}): World {
    const world = startWorld({ SIGN_OUT_REVOKES: 'true', ...environment });
    world.upstream
      .on(REFRESH, reply(200, pair(2)))
      .on(LOGOUT, () => new Response(null, { status: logouts.shift() ?? 204 }));
    return world;
  }

  it.each<[what: string, cookie: string | undefined, logouts: number[], calls: string[]]>([
    ['only the refresh cookie', REFRESH_ONLY, [], [REFRESH, LOGOUT]],
    ['an expired access token', SIGNED_IN, [401], [LOGOUT, REFRESH, LOGOUT]],
    ['an access token that works', SIGNED_IN, [], [LOGOUT]],
    ['a logout that fails with 500', SIGNED_IN, [500], [LOGOUT]],
    ['a logout that is refused with 403', SIGNED_IN, [403], [LOGOUT]],
    ['a new pair that is refused too', SIGNED_IN, [401, 401], [LOGOUT, REFRESH, LOGOUT]],
    ...WITHOUT_A_SESSION.map(([what, cookie]) => [what, cookie, [], []] satisfies [string, unknown, [], []]),
  ])('with %s refreshes once at most', async (_, cookie, logouts, calls) => {
    await using world = startRevoking(logouts);
    await expectSignedOut(await signOut(world, cookie));
    expect(world.upstream.calls).toEqual(calls);
    if (!calls.includes(REFRESH)) return;
    expect(world.upstream.last(REFRESH).body).toBe(REFRESH_1);
    expect(world.upstream.last(LOGOUT).headers.get('authorization')).toBe('Bearer access-2');
    expect(world.upstream.last(LOGOUT).body).toBe(REFRESH_2);
    // Nor does a second sign-out send the spent token again, nor is the session brought back.
    await expectSignedOut(await signOut(world, cookie));
    expect(await envelopeMessage(await models(world, REFRESH_ONLY), 401)).toBe(messages.en.sessionEnded);
    expect(world.upstream.calls).toEqual(calls);
  });

  it.each<[what: string, refreshed: () => Response | Promise<Response>]>([
    ['is refused', reply(400)],
    ['gives half a pair', reply(200, { access_token: 'access-2' })],
    ['is late', silence],
  ])('signs out here when the refresh %s', async (_, refreshed) => {
    await using world = startRevoking([], { TIMEOUT_SIGN_IN_MS: '1000' });
    world.upstream.on(REFRESH, refreshed);
    await expectSignedOut(await signOut(world, REFRESH_ONLY));
    expect(world.upstream.calls).toEqual([REFRESH]);
    expect(world.log).toEqual([]);
  });

  it('waits for a place for the refresh', async () => {
    await using world = startRevoking();
    const { signOuts, ledger } = world.admission;
    fill(signOuts);
    const signedOut = signOut(world, REFRESH_ONLY);
    await eventually(() => ledger.inUse > 0, 'the refresh to wait');
    signOuts.release(1);
    await expectSignedOut(await signedOut);
    expect(world.upstream.calls).toEqual([REFRESH, LOGOUT]);
  });

  it('signs out here when there is no place for the refresh', async () => {
    await using world = startRevoking([], { TIMEOUT_LOGOUT_MS: '1000' });
    fill(world.admission.signOuts);
    await expectSignedOut(await signOut(world, REFRESH_ONLY));
    expect(world.upstream.calls).toEqual([]);
  });

  it('does not repeat a refresh in flight, whose late pair is signed out', async () => {
    await using world = startRevoking();
    const refreshed = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => refreshed.promise);
    const listing = models(world, REFRESH_ONLY);
    await world.upstream.arrived(REFRESH);
    await expectSignedOut(await signOut(world, REFRESH_ONLY));
    refreshed.resolve(Response.json(pair(2)));
    expect((await listing).status).toBe(401);
    expect(world.upstream.calls).toEqual([REFRESH, LOGOUT]);
    expect(world.upstream.last(LOGOUT).body).toBe(REFRESH_2);
  });

  it.each<
    [what: string, cookie: string, refused: string | undefined, calls: string[], last: string | undefined]
  >([
    ['works', REFRESH_ONLY, undefined, [LOGOUT], REFRESH_2],
    ['works, beside a refused one of the cookies', SIGNED_IN, REFRESH_1, [LOGOUT, LOGOUT], undefined],
    ['is refused', REFRESH_ONLY, REFRESH_2, [LOGOUT, REFRESH, LOGOUT], REFRESH_3],
  ])('signs out the newest pair of a spent token, which %s', async (_, cookie, refused, calls, last) => {
    await using world = startRevoking();
    world.upstream
      .on(MODELS, accept('access-2'))
      .on(LOGOUT, ({ body }) => new Response(null, { status: body === refused ? 401 : 204 }));
    await models(world, cookie);
    const before = world.upstream.calls.length;
    world.upstream.on(REFRESH, reply(200, pair(3)));
    await expectSignedOut(await signOut(world, cookie));
    expect(world.upstream.calls.slice(before)).toEqual(calls);
    const bodies = world.upstream.received.slice(before).map(({ body }) => body);
    expect(bodies).toContain(REFRESH_2);
    if (last) expect(bodies.at(-1)).toBe(last);
  });

  it('continues when the client has disconnected', async () => {
    await using world = startRevoking();
    const refreshed = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => refreshed.promise);
    const client = new AbortController();
    const options = { method: 'POST', cookie: REFRESH_ONLY, signal: client.signal };
    const gone = world.request('/api/auth/logout', options);
    await world.upstream.arrived(REFRESH);
    client.abort();
    await expect(gone).rejects.toThrow();
    refreshed.resolve(Response.json(pair(2)));
    await world.upstream.arrived(LOGOUT);
    expect(world.upstream.last(LOGOUT).body).toBe(REFRESH_2);
  });
});
