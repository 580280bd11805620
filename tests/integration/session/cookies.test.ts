/** What the session cookies of a request make of it. What is a token, and how it is sealed: unit/session-cookies. */

import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../../support/metrics.ts';
import { GENERATE, PROXIED_PATH } from '../../support/routes.ts';
import {
  accept,
  checkSession,
  expectRefused,
  ME,
  pair,
  REFRESH,
  reply,
  scriptSignIn,
  sentBack,
  signIn,
} from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, expectCleared, REFRESH_ONLY, SIGNED_IN, startWorld } from '../../support/world.ts';

const TWICE = `${SIGNED_IN}; svc_music_access=tossed; svc_music_refresh=tossed`;
const COOKIE_KEYS = Buffer.alloc(32, 7).toString('base64url');

async function expectState(response: Response, authenticated: boolean): Promise<void> {
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toStartWith('application/json');
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(await response.json()).toEqual({ authenticated });
}

// What a session check relays: relay/relayed-responses.test.ts; how it fails: relay/every-route.test.ts.
describe('a session check', () => {
  it.each([
    ['no cookie', undefined, undefined],
    ['only other cookies', 'theme=dark; svc_music=x', undefined],
    ['a session cookie twice', TWICE, 'sessionCookieTwice'],
  ])('says that nobody is signed in to a request with %s', async (_, cookie, reason) => {
    await using world = startWorld();
    const response = await checkSession(world, cookie);
    await expectState(response, false);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(world.upstream.calls).toEqual([]);
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

  it('responds 502 and logs it when a new token is too large for a cookie', async () => {
    await using world = startWorld();
    world.upstream
      .on(ME, reply(401))
      .on(REFRESH, reply(200, { ...pair(2), refresh_token: 'r'.repeat(4096) }));
    const response = await checkSession(world, SIGNED_IN);
    await expectRefused(response, 502, 'tokensTooLarge');
    // The header says that a refresh was made, and the browser has nothing of it.
    expect(response.headers.get('server-timing')).toBeNull();
    expect(world.log).toHaveLength(1);
    expect(world.log.join()).not.toContain('rrrr');
  });
});

it('A session cookie that was sent twice is a 401 of every other route, with a reason of its own', async () => {
  const metrics = new Metrics();
  await using counted = startWorld({}, metrics);
  const headers = { 'accept-language': 'sw' };
  for (const [path, options] of [
    ['/api/music/models', {}],
    [GENERATE.path, GENERATE.options],
    [PROXIED_PATH, { method: 'PATCH', body: '{}' }],
  ] as const) {
    const response = await counted.request(path, { ...options, cookie: TWICE, headers });
    expect(await envelopeMessage(response, 401)).toBe(messages.sw.sessionCookieTwice);
    expect(response.headers.getSetCookie()).toEqual([]);
  }
  expect(counted.upstream.calls).toEqual([]);
  await checkSession(counted, TWICE);
  await counted.line({ route: '/api/auth/session' });
  expect(counted.lines.map((line) => line['reason'])).toEqual(Array(4).fill('sessionCookieTwice'));
  const samples = await samplesOf(metrics.registry);
  expect(samples.get('errors_total{reason="sessionCookieTwice"}')).toBe(4);
  expect(samples.get('errors_total{reason="notSignedIn"}')).toBe(0);
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

  it('are cleared one by one, and replaced when a refresh follows', async () => {
    const [access, refresh] = sentBack(await signIn(world)).split('; ');
    const half = await checkSession(world, `${access}; svc_music_refresh=nonsense`);
    expect(half.status).toBe(200);
    const cleared = 'svc_music_refresh=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax';
    expect(half.headers.getSetCookie()).toEqual([cleared]);
    world.upstream.on(REFRESH, reply(200, pair(1)));
    const renewed = await checkSession(world, `svc_music_access=nonsense; ${refresh}`);
    expect(renewed.status).toBe(200);
    expect(sentBack(renewed)).toMatch(/^svc_music_access=ey\S+; svc_music_refresh=ey\S+$/);
  });
});
