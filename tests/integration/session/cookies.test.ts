/** What the session cookies of a request make of it. What is a token, and how it is sealed: unit/session-cookies. */

import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { ROUTES, scriptRoutes } from '../../support/routes.ts';
import * as calls from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, expectCleared, REFRESH_ONLY, SIGNED_IN, startWorld } from '../../support/world.ts';

const { accept, checkSession, expectRefused, GRANT, ME, pair } = calls;
const { REFRESH, reply, scriptSignIn, sentBack, signIn } = calls;

const TWICE = `${SIGNED_IN}; svc_music_access=tossed; svc_music_refresh=tossed`;
const COOKIE_KEYS = Buffer.alloc(32, 7).toString('base64url');

async function expectState(response: Response, authenticated: boolean): Promise<void> {
  expect([response.status, await response.json()]).toEqual([200, { authenticated }]);
}

// What a session check relays: relay/relayed-responses.test.ts; how it fails: relay/every-route.test.ts.
describe('a session check', () => {
  it.each([
    ['no cookie', undefined, undefined],
    ['both session cookies twice', TWICE, 'sessionCookieTwice'],
    ['one session cookie twice', 'svc_music_access=tossed; svc_music_access=mine', 'sessionCookieTwice'],
  ])('says that nobody is signed in to a request with %s', async (_, cookie, reason) => {
    await using world = startWorld();
    const response = await checkSession(world, cookie);
    await expectState(response, false);
    expect([response.headers.getSetCookie(), world.upstream.calls]).toEqual([[], []]);
    const line = await world.line({ route: '/api/auth/session' });
    expect([line['level'], line['reason']]).toEqual(['info', reason]);
  });

  it.each([
    [SIGNED_IN, 0],
    [REFRESH_ONLY, 2],
  ])('says that the user is signed in when the upstream knows no profile: %s', async (cookie, stored) => {
    await using world = startWorld();
    world.upstream.on(ME, reply(404, { message: 'no profile' })).on(REFRESH, reply(200, pair(2)));
    const response = await checkSession(world, cookie);
    await expectState(response, true);
    expect(response.headers.getSetCookie()).toHaveLength(stored);
    expect(world.upstream.calls).toEqual(stored ? [REFRESH, ME] : [ME]);
  });
});

it('A session cookie that was sent twice is a 401 where a session is needed, with a reason of its own', async () => {
  await using world = startWorld();
  const headers = { 'accept-language': 'sw' };
  const response = await world.request('/api/music/models', { cookie: TWICE, headers });
  expect(await envelopeMessage(response, 401)).toBe(messages.sw.sessionCookieTwice);
  expect([response.headers.get('content-language'), response.headers.getSetCookie()]).toEqual(['sw', []]);
  expect(world.upstream.calls).toEqual([]);
  expect(world.lines).toMatchObject([{ reason: 'sessionCookieTwice' }]);
});

describe('sealed cookies that cannot be opened', () => {
  const world = sharedWorld({ COOKIE_KEYS });
  scriptSignIn(world);
  world.upstream.on(ME, accept('access-1'));

  it('are cleared by a refusal and by a session check', async () => {
    const refused = await world.request('/api/music/models', { cookie: SIGNED_IN });
    await envelopeMessage(refused, 401);
    const nobody = await checkSession(world, SIGNED_IN);
    await expectState(nobody, false);
    for (const response of [refused, nobody]) expectCleared(response);
    expect(world.upstream.calls).toEqual([]);
  });

  it('stay while the other one can be, and are replaced when a refresh follows', async () => {
    const [access, refresh] = sentBack(await signIn(world)).split('; ');
    const half = await checkSession(world, `${access}; svc_music_refresh=nonsense`);
    expect([half.status, half.headers.getSetCookie()]).toEqual([200, []]);
    world.upstream.on(REFRESH, reply(200, pair(1)));
    const renewed = await checkSession(world, `svc_music_access=nonsense; ${refresh}`);
    expect(renewed.status).toBe(200);
    expect(sentBack(renewed)).toMatch(/^svc_music_access=ey\S+; svc_music_refresh=ey\S+$/);
  });
});

it('Sealed cookies that cannot be opened are left alone by a sign-in that fails late', async () => {
  await using world = startWorld({ COOKIE_KEYS });
  scriptSignIn(world, { ...pair(1), refresh_token: 'r'.repeat(5000) });
  await expectRefused(await signIn(world, GRANT, { cookie: SIGNED_IN }), 502, 'tokensTooLarge');
});

it('Sealed cookies are opened on every route, and the upstream gets the token in them', async () => {
  await using world = startWorld({ COOKIE_KEYS });
  scriptSignIn(world);
  const cookie = sentBack(await signIn(world));
  scriptRoutes(world);
  for (const { name, path, options, calls, credentials } of ROUTES) {
    expect((await world.request(path, { ...options, cookie })).status).toBe(200);
    const { headers } = world.upstream.last(calls.at(-1) ?? '');
    expect([name, headers.get('authorization')]).toEqual([name, credentials]);
  }
});
