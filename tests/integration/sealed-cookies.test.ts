import { afterEach, describe, expect, it, setSystemTime } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { CompactEncrypt } from 'jose';
import { ScriptedUpstream } from '../support/scripted-upstream.ts';
import {
  envelopeMessage,
  expectCleared,
  SIGNED_IN,
  startWorld,
  storedTokens,
  type World,
} from '../support/world.ts';

const ACCESS = 'svc_music_access';
const REFRESH = 'svc_music_refresh';
const CLEARED = (name: string) => `${name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax`;

function newKey(): string {
  return randomBytes(32).toString('base64url');
}

function script(upstream: ScriptedUpstream): void {
  upstream.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
  upstream.on('POST /v1/auth/idp', () =>
    Response.json({ access_token: 'the-access-token', refresh_token: 'the-refresh-token', expires_in: 600 }),
  );
  upstream.on('GET /v1/me', ({ headers }) => Response.json({ bearer: headers.get('authorization') }));
}

/** Signs in, and gives the values of the two cookies. */
async function signIn(world: World): Promise<Record<string, string>> {
  script(world.upstream);
  const response = await world.request('/api/auth/idp', {
    json: { code: 'c', code_verifier: 'v'.repeat(43) },
  });
  expect(response.status).toBe(200);
  return storedTokens(response);
}

/** Cookies made by another gateway, with other keys or none. */
async function signedInElsewhere(environment: Record<string, string>): Promise<Record<string, string>> {
  await using elsewhere = startWorld(environment);
  return await signIn(elsewhere);
}

function header(cookies: Record<string, string | undefined>): string {
  return Object.entries(cookies)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(value ?? '')}`)
    .join('; ');
}

async function session(world: World, cookies: Record<string, string | undefined>): Promise<Response> {
  script(world.upstream);
  return world.request('/api/auth/session', { cookie: header(cookies) });
}

/** The protected header of a sealed cookie. */
function headerOf(sealed = ''): { kid: string; exp: number } {
  return JSON.parse(Buffer.from(sealed.split('.')[0] ?? '', 'base64url').toString());
}

describe('sealed cookies', () => {
  it('hold compact JWEs in which no token can be read, and open to the same bytes', async () => {
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    const cookies = await signIn(world);
    for (const name of [ACCESS, REFRESH]) {
      expect(cookies[name]).toMatch(/^[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/);
      const decoded = (cookies[name] ?? '')
        .split('.')
        .map((part) => Buffer.from(part, 'base64url').toString('latin1'));
      expect(decoded.join()).not.toContain('token');
    }
    const response = await session(world, cookies);
    expect(await response.json()).toEqual({ bearer: 'Bearer the-access-token' });
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  it('carry the attributes that plain ones carry', async () => {
    await using world = startWorld({ COOKIE_KEYS: newKey(), NODE_ENV: 'production' });
    script(world.upstream);
    const response = await world.request('/api/auth/idp', {
      json: { code: 'c', code_verifier: 'v'.repeat(43) },
    });
    const [access, refresh] = response.headers.getSetCookie();
    expect(access).toEndWith('; Path=/; Max-Age=600; Secure; HttpOnly; SameSite=Lax');
    expect(refresh).toEndWith('; Path=/; Max-Age=2592000; Secure; HttpOnly; SameSite=Lax');
  });

  it('are sealed again after a refresh', async () => {
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    const cookies = await signIn(world);
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
    );
    const response = await session(world, { [REFRESH]: cookies[REFRESH] });
    expect(await response.json()).toEqual({ bearer: 'Bearer access-2' });
    expect(world.upstream.last('POST /v1/auth/refresh').body).toBe('{"refresh_token":"the-refresh-token"}');
    const renewed = storedTokens(response);
    expect(await (await session(world, renewed)).json()).toEqual({ bearer: 'Bearer access-2' });
    expect(header(renewed)).not.toContain('refresh-2');
  });

  it('count as absent and are cleared when a single character was changed', async () => {
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    const cookies = await signIn(world);
    const value = cookies[ACCESS] ?? '';
    for (let at = 0; at < value.length; at += 9) {
      const changed = value.slice(0, at) + (value[at] === 'A' ? 'B' : 'A') + value.slice(at + 1);
      const response = await session(world, { [ACCESS]: changed });
      expect(await response.json()).toEqual({ authenticated: false });
      expect(response.headers.getSetCookie()).toEqual([CLEARED(ACCESS)]);
    }
  });

  it('count as absent and are cleared when they are swapped', async () => {
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    const cookies = await signIn(world);
    const response = await session(world, { [ACCESS]: cookies[REFRESH], [REFRESH]: cookies[ACCESS] });
    expect(await response.json()).toEqual({ authenticated: false });
    expectCleared(response);
  });

  it('count as absent and are cleared when they were sealed with a key that is not listed', async () => {
    const foreign = await signedInElsewhere({ COOKIE_KEYS: newKey() });
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    const response = await session(world, foreign);
    expect(await response.json()).toEqual({ authenticated: false });
    expectCleared(response);
  });

  it('count as absent and are cleared when they are plain', async () => {
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    const models = await world.request('/api/music/models', { cookie: SIGNED_IN });
    await envelopeMessage(models, 401);
    expectCleared(models);
  });

  it('stay when only the other one is unreadable', async () => {
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    const cookies = await signIn(world);
    const response = await session(world, { ...cookies, [REFRESH]: 'nonsense' });
    expect(await response.json()).toEqual({ bearer: 'Bearer the-access-token' });
    expect(response.headers.getSetCookie()).toEqual([CLEARED(REFRESH)]);
  });

  it.each([
    ['an empty token', ''],
    ['a line break', 'a\r\nb'],
    ['text that is not ASCII', 'töken'],
  ])('count as absent when they hold %s', async (_, plaintext) => {
    const key = newKey();
    await using world = startWorld({ COOKIE_KEYS: key });
    const { kid } = headerOf((await signIn(world))[ACCESS]);
    const sealed = await new CompactEncrypt(Buffer.from(plaintext))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', typ: 'music-gateway-cookie', kid, cookie: ACCESS })
      .encrypt(Buffer.from(key, 'base64url'));
    const response = await session(world, { [ACCESS]: sealed });
    expect(await response.json()).toEqual({ authenticated: false });
  });

  it('refuse another algorithm, a compressed one among them', async () => {
    const key = newKey();
    await using world = startWorld({ COOKIE_KEYS: key });
    const [head = '', ...rest] = ((await signIn(world))[ACCESS] ?? '').split('.');
    const parsed = JSON.parse(Buffer.from(head, 'base64url').toString());
    for (const change of [
      { alg: 'A256KW' },
      { enc: 'A128GCM' },
      { zip: 'DEF' },
      { alg: 'none' },
      { crit: ['x'], x: 1 },
    ]) {
      const forged = Buffer.from(JSON.stringify({ ...parsed, ...change })).toString('base64url');
      const response = await session(world, { [ACCESS]: [forged, ...rest].join('.') });
      expect(await response.json()).toEqual({ authenticated: false });
    }
  });
});

describe('the expiry time of a sealed cookie', () => {
  const DAYS = 24 * 60 * 60;
  const start = Date.now();
  const after = (seconds: number) => setSystemTime(start + seconds * 1000);
  afterEach(() => void setSystemTime());

  it('is that of the access token in the access cookie, however long the browser keeps it', async () => {
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    after(0);
    const cookies = await signIn(world);
    after(598);
    const early = await session(world, { [ACCESS]: cookies[ACCESS] });
    expect(await early.json()).toEqual({ bearer: 'Bearer the-access-token' });
    expect(early.headers.getSetCookie()).toEqual([]);
    after(601);
    const late = await session(world, { [ACCESS]: cookies[ACCESS] });
    expect(await late.json()).toEqual({ authenticated: false });
    expect(late.headers.getSetCookie()).toEqual([CLEARED(ACCESS)]);
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
    );
    const renewed = await session(world, cookies);
    expect(await renewed.json()).toEqual({ bearer: 'Bearer access-2' });
    expect(renewed.headers.getSetCookie()).toHaveLength(2);
  });

  it('is 30 days ahead in the refresh cookie', async () => {
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
    );
    after(0);
    const cookies = await signIn(world);
    after(30 * DAYS + 1);
    const calls = world.upstream.calls.length;
    const late = await session(world, cookies);
    expect(await late.json()).toEqual({ authenticated: false });
    expectCleared(late);
    expect(world.upstream.calls).toHaveLength(calls);
    after(30 * DAYS - 2);
    expect(await (await session(world, cookies)).json()).toEqual({ bearer: 'Bearer access-2' });
  });

  it.each<[what: string, change: Record<string, unknown>, body: unknown]>([
    ['an earlier version, without one', {}, { bearer: 'Bearer sealed-here' }],
    ['a time ahead', { exp: 9_999_999_999 }, { bearer: 'Bearer sealed-here' }],
    ['a time that is past', { exp: 1 }, { authenticated: false }],
    ['a text instead of a time', { exp: '9999999999' }, { authenticated: false }],
    ['null instead of a time', { exp: null }, { authenticated: false }],
  ])('is read from a cookie of %s', async (_, change, body) => {
    const key = newKey();
    await using world = startWorld({ COOKIE_KEYS: key });
    const { exp, ...header } = headerOf((await signIn(world))[ACCESS]);
    expect(exp).toBeNumber();
    const sealed = await new CompactEncrypt(Buffer.from('sealed-here'))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', ...header, ...change })
      .encrypt(Buffer.from(key, 'base64url'));
    expect(await (await session(world, { [ACCESS]: sealed })).json()).toEqual(body);
  });

  it('cannot be changed without the key', async () => {
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    const value = (await signIn(world))[ACCESS];
    const [, ...rest] = value?.split('.') ?? [];
    const later = Buffer.from(JSON.stringify({ ...headerOf(value), exp: 9_999_999_999 })).toString(
      'base64url',
    );
    const response = await session(world, { [ACCESS]: [later, ...rest].join('.') });
    expect(await response.json()).toEqual({ authenticated: false });
    expect(response.headers.getSetCookie()).toEqual([CLEARED(ACCESS)]);
  });
});

describe('rotating the keys', () => {
  it('signs nobody out who has a cookie under a listed key, and seals with the first', async () => {
    const [older, newer] = [newKey(), newKey()];
    const cookies = await signedInElsewhere({ COOKIE_KEYS: older });
    await using world = startWorld({ COOKIE_KEYS: `${newer},${older}` });
    const response = await session(world, cookies);
    expect(await response.json()).toEqual({ bearer: 'Bearer the-access-token' });
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
    );
    const renewed = storedTokens(await session(world, { [REFRESH]: cookies[REFRESH] }));
    await using afterwards = startWorld({ COOKIE_KEYS: newer });
    expect(await (await session(afterwards, renewed)).json()).toEqual({ bearer: 'Bearer access-2' });
    const dropped = await session(afterwards, cookies);
    expect(await dropped.json()).toEqual({ authenticated: false });
    expectCleared(dropped);
  });
});

describe('rotating the keys under load', () => {
  it('signs nobody out while one instance after the other gets the new keys', async () => {
    const upstream = new RotatingUpstream();
    const [older, newer] = [newKey(), newKey()];
    const instance = (keys: string) =>
      startWorld({
        COOKIE_KEYS: keys,
        UPSTREAM_URL: upstream.upstreamUrl,
        IDP_URL: upstream.identityProviderUrl,
      });
    await using first = instance(older);
    await using second = instance(`${older},${newer}`);
    await using third = instance(`${newer},${older}`);
    await using fourth = instance(newer);
    const users = await Promise.all(Array.from({ length: 20 }, () => signInAt(first)));
    for (const instances of [
      [first, second],
      [second, third],
      [third, fourth],
    ]) {
      await Promise.all(
        users.map(async (jar) => {
          for (let count = 0; count < 10; count++) {
            // Every third time the access token has expired, and the refresh seals with the first key.
            if (count % 3 === 0) delete jar[ACCESS];
            const world = instances[count % 2] ?? first;
            const response = await world.request('/api/auth/session', { cookie: header(jar) });
            expect(response.status).toBe(200);
            expect(await response.json()).toEqual({ signed: 'in' });
            Object.assign(jar, storedTokens(response));
          }
          // The last refresh of a phase is at the newer of its instances.
          delete jar[ACCESS];
          Object.assign(
            jar,
            storedTokens(await (instances[1] ?? first).request('/api/auth/session', { cookie: header(jar) })),
          );
        }),
      );
    }
    expect(upstream.reused).toBe(false);
    await upstream.stop();
  });
});

/** Signs in with another pair each time, rotates, and notices a refresh token that comes a second time. */
class RotatingUpstream extends ScriptedUpstream {
  reused = false;
  #issued = 0;
  readonly #spent = new Set<string>();

  constructor() {
    super();
    const pair = () => ({
      access_token: `access-${++this.#issued}`,
      refresh_token: `refresh-${this.#issued}`,
    });
    this.on('POST /oauth/token', () => Response.json({ access_token: 'identity' }));
    this.on('POST /v1/auth/idp', () => Response.json(pair()));
    this.on('GET /v1/me', () => Response.json({ signed: 'in' }));
    this.on('POST /v1/auth/refresh', ({ body }) => {
      this.reused ||= this.#spent.has(body);
      this.#spent.add(body);
      return Response.json(pair());
    });
  }
}

async function signInAt(world: World): Promise<Record<string, string>> {
  return storedTokens(
    await world.request('/api/auth/idp', { json: { code: 'c', code_verifier: 'v'.repeat(43) } }),
  );
}

describe('COOKIE_KEYS_ACCEPT_PLAIN', () => {
  it('takes over cookies from before sealing was on, and seals them at the next refresh', async () => {
    const cookies = await signedInElsewhere({});
    await using world = startWorld({ COOKIE_KEYS: newKey(), COOKIE_KEYS_ACCEPT_PLAIN: 'true' });
    const response = await session(world, cookies);
    expect(await response.json()).toEqual({ bearer: 'Bearer the-access-token' });
    world.upstream.on('POST /v1/auth/refresh', () =>
      Response.json({ access_token: 'access-2', refresh_token: 'refresh-2' }),
    );
    const renewed = storedTokens(await session(world, { [REFRESH]: cookies[REFRESH] }));
    expect(renewed[REFRESH]).toMatch(/^[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/);
  });

  it('takes over a plain token that is a JWE of the upstream', async () => {
    const token = await new CompactEncrypt(Buffer.from('x'))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: 'of-the-upstream' })
      .encrypt(randomBytes(32));
    await using world = startWorld({ COOKIE_KEYS: newKey(), COOKIE_KEYS_ACCEPT_PLAIN: 'true' });
    expect(await (await session(world, { [ACCESS]: token })).json()).toEqual({ bearer: `Bearer ${token}` });
  });

  it('does not take over what was sealed with a key that is not listed', async () => {
    const foreign = await signedInElsewhere({ COOKIE_KEYS: newKey() });
    await using world = startWorld({ COOKIE_KEYS: newKey(), COOKIE_KEYS_ACCEPT_PLAIN: 'true' });
    const response = await session(world, foreign);
    expect(await response.json()).toEqual({ authenticated: false });
    expectCleared(response);
  });
});

describe('a sealed token pair too large for a cookie', () => {
  it.each([
    ['fits', 2800, 200],
    ['is refused with 502 and stored nowhere', 3000, 502],
  ])('%s at %i characters, because sealing makes it grow', async (_, length, status) => {
    await using world = startWorld({ COOKIE_KEYS: newKey() });
    script(world.upstream);
    world.upstream.on('POST /v1/auth/idp', () =>
      Response.json({ access_token: 'a'.repeat(length), refresh_token: 'r' }),
    );
    const response = await world.request('/api/auth/idp', {
      json: { code: 'c', code_verifier: 'v'.repeat(43) },
    });
    expect(response.status).toBe(status);
    const sizes = response.headers.getSetCookie().map((cookie) => cookie.indexOf(';') - 1);
    if (status === 200) expect(Math.max(...sizes)).toBeLessThanOrEqual(4096);
    else expect(sizes).toEqual([]);
    // Plain, both would fit.
    await using plain = startWorld();
    script(plain.upstream);
    plain.upstream.on('POST /v1/auth/idp', () =>
      Response.json({ access_token: 'a'.repeat(length), refresh_token: 'r' }),
    );
    const unsealed = await plain.request('/api/auth/idp', {
      json: { code: 'c', code_verifier: 'v'.repeat(43) },
    });
    expect(unsealed.status).toBe(200);
  });
});
