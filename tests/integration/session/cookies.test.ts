import { describe, expect, it } from 'bun:test';
import { messages } from '../../../src/gateway/http/messages.ts';
import { Metrics } from '../../../src/gateway/telemetry/metrics.ts';
import { samplesOf } from '../../support/metrics.ts';
import { GENERATE, PROXIED_PATH } from '../../support/routes.ts';
import {
  accept,
  checkSession,
  ME,
  pair,
  REFRESH,
  reply,
  scriptSignIn,
  sentBack,
  signIn,
} from '../../support/session-calls.ts';
import { rawCall, sharedWorld } from '../../support/shared-world.ts';
import { envelopeMessage, expectCleared, SIGNED_IN, startWorld } from '../../support/world.ts';

const MODELS = 'GET /v1/models';
const COOKIE_KEYS = Buffer.alloc(32, 7).toString('base64url');

// What counts as a token, and what is written and sealed: unit/session-cookies.test.ts.
describe('the Cookie header', () => {
  const world = sharedWorld();
  world.upstream.on(MODELS, reply(200, [])).on(REFRESH, reply(200, pair(2)));
  const models = (cookie: string, ...lines: string[]) =>
    rawCall(world, 'GET /api/music/models', { cookie, lines });

  it.each([
    ['a control character', [400, 401], ['a\x00b', 'a\x01b', 'a\x0bb', 'a\rb', 'a\nb', 'a\r\n b']],
    ['one value too large for a header', [431], ['a'.repeat(17_000)]],
    ['too many values for a header', [431], [`a; ${'other=x; '.repeat(20_000)}`]],
  ])('with %s never reaches the upstream', async (_, statuses, values) => {
    for (const value of values) {
      expect((await models(`svc_music_access=${value}`)).status).toBeOneOf(statuses);
    }
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it('may have two lines, bytes that are no text and 15 KB, and the upstream gets the token alone', async () => {
    const token = 'a'.repeat(15_000);
    const { status } = await models('other=\x80\xff', `Cookie: svc_music_access=${token}`);
    expect(status).toBe(200);
    const { headers } = world.upstream.last(MODELS);
    expect(headers.get('authorization')).toBe(`Bearer ${token}`);
    const names = 'accept accept-encoding authorization connection host traceparent user-agent x-request-id';
    expect([...headers.keys()].toSorted()).toEqual(names.split(' '));
  });

  it.each([
    ['%22%7D%7B%22', '"}{"'],
    ['{"a":1}', '{"a":1}'],
    ['r1; svc_music_access=a%20b', 'r1'],
  ])(
    'with a refresh token alone is used, as a string in the JSON of the refresh: %s',
    async (value, token) => {
      expect((await models(`svc_music_refresh=${value}`)).status).toBe(200);
      expect(world.upstream.calls).toEqual([REFRESH, MODELS]);
      expect(JSON.parse(world.upstream.last(REFRESH).body)).toEqual({ refresh_token: token });
      expect(world.upstream.last(MODELS).headers.get('authorization')).toBe('Bearer access-2');
    },
  );

  it.each([
    ['/api/music/models', {}],
    [GENERATE.path, GENERATE.options],
    [PROXIED_PATH, {}],
    [PROXIED_PATH, { method: 'PATCH', body: '{}' }],
  ])('with a session cookie twice is a 401 of %s with a reason of its own', async (path, options) => {
    const metrics = new Metrics();
    await using counted = startWorld({}, metrics);
    const cookie = `${SIGNED_IN}; svc_music_access=tossed; svc_music_refresh=tossed`;
    const headers = { 'accept-language': 'sw' };
    const response = await counted.request(path, { ...options, cookie, headers });
    expect(await envelopeMessage(response, 401)).toBe(messages.sw.sessionCookieTwice);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(counted.upstream.calls).toEqual([]);
    expect(await counted.line({ status: 401 })).toMatchObject({ reason: 'sessionCookieTwice' });
    await checkSession(counted, cookie);
    const samples = await samplesOf(metrics.registry);
    expect(samples.get('errors_total{reason="sessionCookieTwice"}')).toBe(2);
    expect(samples.get('errors_total{reason="notSignedIn"}')).toBe(0);
  });
});

describe('sealed cookies that cannot be opened', () => {
  const CLEARED = ['svc_music_refresh=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'];

  it('are cleared: both by a refusal and a session check, and one alone', async () => {
    await using world = startWorld({ COOKIE_KEYS });
    scriptSignIn(world);
    world.upstream.on(ME, accept('access-1'));
    const refused = await world.request('/api/music/models', { cookie: SIGNED_IN });
    await envelopeMessage(refused, 401);
    expectCleared(refused);
    const nobody = await checkSession(world, SIGNED_IN);
    expect(await nobody.json()).toEqual({ authenticated: false });
    expectCleared(nobody);
    expect(world.upstream.calls).toEqual([]);
    const [access] = sentBack(await signIn(world)).split('; ');
    const half = await checkSession(world, `${access}; svc_music_refresh=nonsense`);
    expect(half.status).toBe(200);
    expect(half.headers.getSetCookie()).toEqual(CLEARED);
  });

  it('are replaced when a refresh follows', async () => {
    await using world = startWorld({ COOKIE_KEYS });
    scriptSignIn(world);
    world.upstream.on(ME, accept('access-2')).on(REFRESH, reply(200, pair(2)));
    const [, refresh] = sentBack(await signIn(world)).split('; ');
    const renewed = await checkSession(world, `svc_music_access=nonsense; ${refresh}`);
    expect(renewed.status).toBe(200);
    expect(sentBack(renewed)).toMatch(/^svc_music_access=ey\S+; svc_music_refresh=ey\S+$/);
  });
});
