import { describe, expect, it } from 'bun:test';
import { messages } from '../../src/gateway/http/messages.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { envelopeMessage, startWorld, storedTokens, type World } from '../support/world.ts';

const PREFIXES = ['__Host-', '__Host-Http-'] as const;
const LONG = 'svc_music_refresh'.length;

function startScripted(environment: Environment): World {
  const world = startWorld(environment);
  world.upstream
    .on('POST /oauth/token', () => Response.json({ access_token: 'identity' }))
    .on('POST /v1/auth/idp', () => Response.json({ access_token: 'access-1', refresh_token: 'refresh-1' }))
    .on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
    )
    .on('POST /v1/auth/logout', () => new Response())
    .on('GET /v1/me', ({ headers }) => Response.json({ bearer: headers.get('authorization') }));
  return world;
}

function signIn(world: World): Promise<Response> {
  return world.request('/api/auth/idp', { json: { code: 'c', code_verifier: 'v'.repeat(43) } });
}

function header(tokens: Readonly<Record<string, string>>): string {
  return Object.entries(tokens)
    .map(([name, value]) => `${name}=${value}`)
    .join('; ');
}

describe('the session cookies', () => {
  it.each<[environment: Environment, prefix: string, attributes: string]>([
    [{}, '', 'HttpOnly; SameSite=Lax'],
    [{ COOKIE_SAME_SITE: 'strict' }, '', 'HttpOnly; SameSite=Strict'],
    [{ COOKIE_SECURE: 'true' }, '', 'Secure; HttpOnly; SameSite=Lax'],
    [{ COOKIE_SECURE: 'false', NODE_ENV: 'production' }, '', 'Secure; HttpOnly; SameSite=Lax'],
    [{ COOKIE_PREFIX: '__Host-', COOKIE_SECURE: 'true' }, '__Host-', 'Secure; HttpOnly; SameSite=Lax'],
    [
      { COOKIE_PREFIX: '__Host-Http-', COOKIE_SAME_SITE: 'strict', NODE_ENV: 'production' },
      '__Host-Http-',
      'Secure; HttpOnly; SameSite=Strict',
    ],
  ])('keep name and attributes from sign-in to sign-out: %j', async (environment, prefix, attributes) => {
    await using world = startScripted(environment);
    const cookies = (access: string, refresh: string, accessAge: number, refreshAge: number) => [
      `${prefix}svc_music_access=${access}; Path=/; Max-Age=${accessAge}; ${attributes}`,
      `${prefix}svc_music_refresh=${refresh}; Path=/; Max-Age=${refreshAge}; ${attributes}`,
    ];
    const signedIn = await signIn(world);
    expect(signedIn.status).toBe(200);
    expect(signedIn.headers.getSetCookie()).toEqual(cookies('access-1', 'refresh-1', 900, 2_592_000));

    const tokens = storedTokens(signedIn);
    const session = await world.request('/api/auth/session', { cookie: header(tokens) });
    expect(await session.json()).toEqual({ bearer: 'Bearer access-1' });

    const [, refresh] = Object.entries(tokens);
    const renewed = await world.request('/api/auth/session', { cookie: refresh?.join('=') ?? '' });
    expect(await renewed.json()).toEqual({ bearer: 'Bearer access-2' });
    expect(world.upstream.last('POST /v1/auth/refresh').body).toBe('{"refresh_token":"refresh-1"}');
    expect(renewed.headers.getSetCookie()).toEqual(cookies('access-2', 'refresh-2', 900, 2_592_000));

    const cookie = header(storedTokens(renewed));
    const signedOut = await world.request('/api/auth/logout', { method: 'POST', cookie });
    expect(await signedOut.text()).toBe('{"ok":true}');
    expect(signedOut.headers.getSetCookie()).toEqual(cookies('', '', 0, 0));
    expect(world.upstream.last('POST /v1/auth/logout').body).toBe('{"refresh_token":"refresh-2"}');
  });
});

describe.each(PREFIXES)('COOKIE_PREFIX=%s', (prefix) => {
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
    const alone = await world.request('/api/auth/session', { cookie: other });
    expect(await alone.json()).toEqual({ authenticated: false });
    expect(world.upstream.calls).toEqual([]);
    const beside = await world.request('/api/auth/session', { cookie: `${other}; ${SIGNED_IN}; ${other}` });
    expect(await beside.json()).toEqual({ bearer: 'Bearer access-1' });
  });

  it('takes two cookies of one name for no session', async () => {
    await using world = startScripted(ENVIRONMENT);
    const response = await world.request('/api/music/models', { cookie: `${SIGNED_IN}; ${SIGNED_IN}` });
    expect(await envelopeMessage(response, 401)).toBe(messages.sessionCookieTwice.en);
    expect(world.upstream.calls).toEqual([]);
  });

  it.each([
    [4096, 200],
    [4097, 502],
  ])('counts in the size of a cookie: %i bytes are %i', async (bytes, status) => {
    await using world = startScripted(ENVIRONMENT);
    const refresh_token = 'r'.repeat(bytes - LONG - prefix.length);
    world.upstream.on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token }));
    const response = await signIn(world);
    expect(response.status).toBe(status);
    expect(response.headers.getSetCookie()).toHaveLength(status === 200 ? 2 : 0);
  });

  it('binds a sealed cookie to its whole name', async () => {
    const COOKIE_KEYS = Buffer.alloc(32, 7).toString('base64url');
    await using plain = startScripted({ COOKIE_KEYS });
    await using world = startScripted({ ...ENVIRONMENT, COOKIE_KEYS });
    const own = storedTokens(await signIn(world));
    const session = await world.request('/api/auth/session', { cookie: header(own) });
    expect(await session.json()).toEqual({ bearer: 'Bearer access-1' });
    const renamed = Object.entries(storedTokens(await signIn(plain))).map(([name, value]) => [
      prefix + name,
      value,
    ]);
    const refused = await world.request('/api/auth/session', { cookie: header(Object.fromEntries(renamed)) });
    expect(await refused.json()).toEqual({ authenticated: false });
    expect(refused.headers.getSetCookie()).toHaveLength(2);
  });
});
