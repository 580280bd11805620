import { describe, expect, it, jest, mock } from 'bun:test';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { messages } from '../../../src/gateway/http/messages.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { later } from '../../support/later.ts';
import { fill } from '../../support/long-calls.ts';
import { recordLog } from '../../support/recorded-log.ts';
import type { Received, Respond } from '../../support/scripted-upstream.ts';
import * as calls from '../../support/session-calls.ts';
import {
  ACCESS_ONLY,
  CLOSED,
  envelopeMessage,
  expectCleared,
  ORIGIN,
  REFRESH_ONLY,
  SIGNED_IN,
  startWorld,
  testSettings,
  type World,
} from '../../support/world.ts';

const { accept, LOGOUT, pair, REFRESH, reply, signOut, silence } = calls;

const MODELS = 'GET /v1/models';
const bodyOf = (generation: number) => `{"refresh_token":"refresh-${generation}"}`;
/** What the upstream receives: a refresh with the token of this generation, or a sign-out with its pair. */
const renewing = (generation: number) => `${REFRESH} null ${bodyOf(generation)}`;
const ending = (generation: number) => `${LOGOUT} Bearer access-${generation} ${bodyOf(generation)}`;

/** Asserts the only response that a sign-out has, whatever the upstream makes of it. */
async function expectSignedOut(response: Response): Promise<void> {
  const timing = response.headers.get('server-timing');
  expect([response.status, timing, await response.text()]).toEqual([200, null, '{"ok":true}']);
  expectCleared(response);
}

/** Asserts that nothing of the browser is with them. */
function sentTo({ upstream }: World): string[] {
  return upstream.received.map(({ headers, body }, index) => {
    for (const name of ['accept', 'content-type']) expect(headers.get(name)).toBe('application/json');
    for (const name of ['cookie', 'origin']) expect(headers.get(name)).toBeNull();
    return `${upstream.calls[index]} ${headers.get('authorization')} ${body}`;
  });
}

const models = (world: World, cookie: string) => world.request('/api/music/models', { cookie });

const REVOKES = { SIGN_OUT_REVOKES: 'true' };
const LATE = { TIMEOUT_LOGOUT_MS: '1000', TIMEOUT_SIGN_IN_MS: '1000' };
const DONE = reply(204);
const RENEWED = reply(200, pair(2));

function startRevoking(environment: Environment = {}): World {
  const world = startWorld({ ...REVOKES, ...environment });
  world.upstream.on(REFRESH, RENEWED).on(LOGOUT, DONE);
  return world;
}

const EXPIRED = ({ body }: Received) => reply(body === bodyOf(1) ? 401 : 204)();
const ENDED_TWICE = [ending(1), renewing(1), ending(2)];

it.each<[Environment, cookie: string, what: string, logout: Respond, refresh: Respond, calls: string[]]>([
  [{}, SIGNED_IN, 'both tokens', DONE, RENEWED, [ending(1)]],
  [{}, SIGNED_IN, 'a refusal', reply(401), RENEWED, [ending(1)]],
  [{ UPSTREAM_URL: CLOSED }, SIGNED_IN, 'no upstream', DONE, RENEWED, []],
  [{}, REFRESH_ONLY, 'no access token', DONE, RENEWED, []],
  [REVOKES, REFRESH_ONLY, 'no access token', DONE, RENEWED, [renewing(1), ending(2)]],
  [REVOKES, REFRESH_ONLY, 'a refused refresh', DONE, reply(400), [renewing(1)]],
  [{ ...REVOKES, ...LATE }, REFRESH_ONLY, 'a late refresh', DONE, silence, [renewing(1)]],
  [REVOKES, SIGNED_IN, 'an expired access token', EXPIRED, RENEWED, ENDED_TWICE],
  [REVOKES, SIGNED_IN, 'a new pair that is refused too', reply(401), RENEWED, ENDED_TWICE],
  [REVOKES, SIGNED_IN, 'a refusal with 403', reply(403), RENEWED, [ending(1)]],
  [REVOKES, SIGNED_IN, 'an outage', reply(503), RENEWED, [ending(1)]],
  [{ ...REVOKES, ...LATE }, SIGNED_IN, 'no response', silence, RENEWED, [ending(1)]],
])('A session ends here with %j, %s and %s', async (environment, cookie, _, logout, refresh, calls) => {
  await using world = startWorld(environment);
  world.upstream.on(LOGOUT, logout).on(REFRESH, refresh);
  await expectSignedOut(await signOut(world, cookie));
  // A second one repeats the call, which may have failed, but no refresh: it would be a reuse.
  await expectSignedOut(await signOut(world, cookie));
  expect(await envelopeMessage(await models(world, REFRESH_ONLY), 401)).toBe(messages.en.sessionEnded);
  const repeated = calls.includes(ending(1)) ? [ending(1)] : [];
  expect(sentTo(world)).toEqual([...calls, ...repeated]);
});

it('A sign-out gets its response before anybody can have signed in, while its call goes on', async () => {
  await using world = startRevoking();
  const [refused, refreshed, done] = Array.from({ length: 3 }, () => Promise.withResolvers<Response>());
  world.upstream
    .on(LOGOUT, ({ body }) => (body === bodyOf(1) ? refused : done)?.promise ?? DONE())
    .on(REFRESH, () => refreshed?.promise ?? DONE());
  await expectSignedOut(await signOut(world, SIGNED_IN));
  const settled = world.settled();
  // A sign-in as somebody else, whose cookies nothing clears any more.
  calls.scriptSignIn(world, pair(7));
  const signedIn = await calls.signIn(world, calls.GRANT, { cookie: SIGNED_IN });
  expect(calls.sentBack(signedIn)).toBe(calls.cookies(7));
  expect(world.upstream.last(LOGOUT).signal.aborted).toBe(false);
  refused?.resolve(reply(401)());
  await world.upstream.arrived(REFRESH);
  refreshed?.resolve(RENEWED());
  await world.upstream.arrived(LOGOUT, 2);
  done?.resolve(DONE());
  await settled;
  const called = world.upstream.received.map(({ body }) => body).filter((body) => body.includes('refresh'));
  expect(called).toEqual([bodyOf(1), bodyOf(1), bodyOf(2)]);
  const outcomes = [401, 200, 204].map((outcome) => expect.objectContaining({ outcome }));
  expect(await world.line({ route: '/api/auth/logout' })).toMatchObject({ status: 200, upstream: outcomes });
});

// What unread bodies cost: load/siege.
it('A sign-out discards its body at once, also when that fails', async () => {
  const gateway = createGateway({ settings: testSettings(), logger: recordLog().logger });
  const cancel = mock().mockRejectedValue(new Error());
  const request = { method: 'POST', headers: { origin: ORIGIN }, body: new ReadableStream({ cancel }) };
  await expectSignedOut(await gateway.handle(new Request('http://x/api/auth/logout', request)));
  expect(cancel).toHaveBeenCalled();
});

it.each([undefined, ACCESS_ONLY, `${SIGNED_IN}; svc_music_refresh=refresh-2`])(
  'A sign-out without a refresh token, or with two, clears both cookies without a call: %s',
  async (cookie) => {
    for (const start of [startWorld, startRevoking]) {
      await using world = start();
      await expectSignedOut(await signOut(world, cookie));
      expect(world.upstream.calls).toEqual([]);
    }
  },
);

describe('a sign-out with SIGN_OUT_REVOKES', () => {
  it.each([
    ['refreshes first when it gets a place for that', 7000, [renewing(1), ending(2)]],
    ['ends the session here alone when it gets none within its deadline', 10_000, []],
  ])('%s', async (_, freeAfterMs, sent) => {
    await using world = startRevoking({ TIMEOUT_LOGOUT_MS: '10000' });
    const { signOuts, ledger } = world.admission;
    fill(signOuts);
    jest.useFakeTimers();
    const signedOut = signOut(world, REFRESH_ONLY);
    while (!ledger.inUse) await new Promise(setImmediate);
    jest.advanceTimersByTime(freeAfterMs);
    signOuts.release();
    await expectSignedOut(await signedOut);
    // The response does not wait for the calls.
    while (world.upstream.calls.length < sent.length) await new Promise(setImmediate);
    expect(sentTo(world)).toEqual(sent);
  });

  it('discards a refresh in flight, does not repeat it, and signs its late pair out upstream', async () => {
    await using world = startRevoking();
    const refreshed = Promise.withResolvers<Response>();
    world.upstream.on(REFRESH, () => refreshed.promise);
    const listings = [models(world, REFRESH_ONLY), models(world, REFRESH_ONLY)];
    await world.upstream.arrived(REFRESH);
    // Requests that arrive in the same millisecond as the sign-out count as later.
    later(0.001);
    await expectSignedOut(await signOut(world, REFRESH_ONLY));
    // As long as a refresh may take.
    later(15);
    refreshed.resolve(Response.json(pair(2)));
    for (const response of await Promise.all(listings)) {
      expect(await envelopeMessage(response, 401)).toBe(messages.en.sessionEnded);
      // The sign-out has cleared them, and a sign-in may have set others since.
      expect(response.headers.getSetCookie()).toEqual([]);
    }
    expectCleared(await models(world, REFRESH_ONLY));
    expect(sentTo(world)).toEqual([renewing(1), ending(2)]);
  });

  it.each<[what: string, cookie: string, refused: number, sent: string[]]>([
    ['works, beside a refused one', SIGNED_IN, 1, [ending(1), ending(2)]],
    ['is refused', REFRESH_ONLY, 2, [ending(2), renewing(2), ending(3)]],
  ])('signs out the newest pair of a spent token, which %s', async (_, cookie, refused, sent) => {
    await using world = startRevoking();
    world.upstream
      .on(MODELS, accept('access-2'))
      .on(LOGOUT, ({ body }) => reply(body === bodyOf(refused) ? 401 : 204)());
    await models(world, cookie);
    world.upstream.received.length = 0;
    world.upstream.on(REFRESH, reply(200, pair(3)));
    await expectSignedOut(await signOut(world, cookie));
    // Two pairs are signed out at the same time.
    expect(sentTo(world).toSorted()).toEqual(sent.toSorted());
  });
});
