import { describe, expect, it } from 'bun:test';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import {
  checkSession,
  expectRefused,
  LOGOUT,
  ME,
  pair,
  REFRESH,
  reply,
  SIGN_IN,
  scriptSignIn,
  sentBack,
  signIn,
  signOut,
} from '../../support/session-calls.ts';
import { startWorld, type World } from '../../support/world.ts';

const COOKIE_KEYS = Buffer.alloc(32, 7).toString('base64url');

function startScripted(environment: Environment): World {
  const world = startWorld(environment);
  scriptSignIn(world);
  world.upstream
    .on(REFRESH, reply(200, pair(2)))
    .on(LOGOUT, reply(200))
    .on(ME, ({ headers }) => Response.json({ bearer: headers.get('authorization') }));
  return world;
}

describe.each([
  ['plain', {}],
  ['sealed', { COOKIE_KEYS }],
])('%s session cookies', (kind, sealing) => {
  it.each<[environment: Environment, prefix: string, attributes: string]>([
    [{}, '', 'HttpOnly; SameSite=Lax'],
    [{ COOKIE_SAME_SITE: 'strict' }, '', 'HttpOnly; SameSite=Strict'],
    [{ COOKIE_SECURE: 'true' }, '', 'Secure; HttpOnly; SameSite=Lax'],
    [{ NODE_ENV: 'production' }, '', 'Secure; HttpOnly; SameSite=Lax'],
    [{ COOKIE_SECURE: 'false', NODE_ENV: 'production' }, '', 'Secure; HttpOnly; SameSite=Lax'],
    [{ COOKIE_PREFIX: '__Host-', COOKIE_SECURE: 'true' }, '__Host-', 'Secure; HttpOnly; SameSite=Lax'],
    [
      { COOKIE_PREFIX: '__Host-Http-', COOKIE_SAME_SITE: 'strict', NODE_ENV: 'production' },
      '__Host-Http-',
      'Secure; HttpOnly; SameSite=Strict',
    ],
  ])('keep name and attributes from sign-in to sign-out: %j', async (environment, prefix, attributes) => {
    await using world = startScripted({ ...environment, ...sealing });
    const expectCookies = (response: Response, values: [string, string], maxAges: [number, number]) => {
      const found = response.headers.getSetCookie();
      const sent = kind === 'sealed' ? found.map((each) => each.replace(/=ey[^;]+/, '=SEALED')) : found;
      const [access, refresh] = kind === 'sealed' && values[0] ? ['SEALED', 'SEALED'] : values;
      expect(sent).toEqual([
        `${prefix}svc_music_access=${access}; Path=/; Max-Age=${maxAges[0]}; ${attributes}`,
        `${prefix}svc_music_refresh=${refresh}; Path=/; Max-Age=${maxAges[1]}; ${attributes}`,
      ]);
    };
    const signedIn = await signIn(world);
    expect(signedIn.status).toBe(200);
    expectCookies(signedIn, ['access-1', 'refresh-1'], [900, 2_592_000]);
    const session = await checkSession(world, sentBack(signedIn));
    expect(await session.json()).toEqual({ bearer: 'Bearer access-1' });

    const [, refresh] = sentBack(signedIn).split('; ');
    const renewed = await checkSession(world, refresh);
    expect(await renewed.json()).toEqual({ bearer: 'Bearer access-2' });
    expect(world.upstream.last(REFRESH).body).toBe('{"refresh_token":"refresh-1"}');
    expectCookies(renewed, ['access-2', 'refresh-2'], [900, 2_592_000]);

    const signedOut = await signOut(world, sentBack(renewed));
    expect(await signedOut.text()).toBe('{"ok":true}');
    expectCookies(signedOut, ['', ''], [0, 0]);
    expect(world.upstream.last(LOGOUT).body).toBe('{"refresh_token":"refresh-2"}');
  });
});

describe.each(['__Host-', '__Host-Http-'])('COOKIE_PREFIX=%s', (prefix) => {
  const ENVIRONMENT = { COOKIE_PREFIX: prefix, NODE_ENV: 'production' };
  const SIGNED_IN = `${prefix}svc_music_access=access-1; ${prefix}svc_music_refresh=refresh-1`;

  it.each([
    'svc_music_access=tossed; svc_music_refresh=tossed',
    `${prefix.toLowerCase()}svc_music_access=tossed`,
    '__Secure-svc_music_access=tossed',
    '__Http-svc_music_refresh=tossed',
    prefix === '__Host-' ? '__Host-Http-svc_music_access=tossed' : '__Host-svc_music_access=tossed',
  ])('ignores a cookie of another name: %s', async (other) => {
    await using world = startScripted(ENVIRONMENT);
    const alone = await checkSession(world, other);
    expect(await alone.json()).toEqual({ authenticated: false });
    expect(world.upstream.calls).toEqual([]);
    const beside = await checkSession(world, `${other}; ${SIGNED_IN}; ${other}`);
    expect(await beside.json()).toEqual({ bearer: 'Bearer access-1' });
  });

  it('takes two cookies of one name for no session', async () => {
    await using world = startScripted(ENVIRONMENT);
    const response = await world.request('/api/music/models', { cookie: `${SIGNED_IN}; ${SIGNED_IN}` });
    await expectRefused(response, 401, 'sessionCookieTwice');
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    [4096, 200],
    [4097, 502],
  ])('is part of the size of a cookie: %i bytes get %i', async (bytes, status) => {
    await using world = startScripted(ENVIRONMENT);
    const refresh_token = 'r'.repeat(bytes - 'svc_music_refresh'.length - prefix.length);
    world.upstream.on(SIGN_IN, reply(200, { access_token: 'a', refresh_token }));
    const response = await signIn(world);
    expect(response.status).toBe(status);
    expect(response.headers.getSetCookie()).toHaveLength(status === 200 ? 2 : 0);
  });

  it('is part of the name to which a sealed cookie is bound', async () => {
    await using plain = startScripted({ COOKIE_KEYS });
    await using world = startScripted({ ...ENVIRONMENT, COOKIE_KEYS });
    const renamed = sentBack(await signIn(plain)).replaceAll('svc_music', `${prefix}svc_music`);
    const refused = await checkSession(world, renamed);
    expect(await refused.json()).toEqual({ authenticated: false });
    expect(refused.headers.getSetCookie()).toHaveLength(2);
  });
});
