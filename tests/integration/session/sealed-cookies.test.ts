import { afterEach, describe, expect, it, setSystemTime, spyOn } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { CompactEncrypt, type CompactJWEHeaderParameters } from 'jose';
import { CookieSeal } from '../../../src/gateway/session/cookie-seal.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import {
  checkSession,
  expectRefused,
  ME,
  pair,
  REFRESH as REFRESH_CALL,
  reply,
  SIGN_IN,
  scriptSignIn,
  signIn,
} from '../../support/session-calls.ts';
import { expectCleared, SIGNED_IN, startWorld, storedTokens, type World } from '../../support/world.ts';

const ACCESS = 'svc_music_access';
const REFRESH = 'svc_music_refresh';
const CLEARED = {
  access: [`${ACCESS}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax`],
  refresh: [`${REFRESH}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax`],
};
const NOBODY = { authenticated: false };
const THE_PAIR = { access_token: 'the-access-token', refresh_token: 'the-refresh-token', expires_in: 600 };

/** The values of cookies, by name. */
type Jar = Record<string, string | undefined>;

function newKey(): string {
  return randomBytes(32).toString('base64url');
}

/** A gateway with the cookies of a sign-in. */
async function startSignedIn(environment: Environment = { COOKIE_KEYS: newKey() }) {
  const world = startWorld(environment);
  scriptSignIn(world, THE_PAIR);
  world.upstream
    .on(ME, ({ headers }) => Response.json({ bearer: headers.get('authorization') }))
    .on(REFRESH_CALL, reply(200, pair(2)));
  const jar: Jar = storedTokens(await signIn(world));
  return Object.assign(world, { jar });
}

/** Cookies from another gateway, with other keys or none. */
async function jarFrom(environment: Environment): Promise<Jar> {
  await using elsewhere = await startSignedIn(environment);
  return elsewhere.jar;
}

function header(jar: Jar): string {
  const present = Object.entries(jar).filter(([, value]) => value !== undefined);
  return present.map(([name, value]) => `${name}=${encodeURIComponent(value ?? '')}`).join('; ');
}

function session(world: World, jar: Jar): Promise<Response> {
  return checkSession(world, header(jar));
}

async function expectBearer(response: Response, token: string): Promise<void> {
  expect(await response.json()).toEqual({ bearer: `Bearer ${token}` });
}

/** The protected header of a sealed cookie. */
function headerOf(sealed = ''): CompactJWEHeaderParameters & { exp?: number } {
  return JSON.parse(Buffer.from(sealed.split('.')[0] ?? '', 'base64url').toString());
}

/** The sealed value with another header, without the key. */
function forge(sealed = '', change: object = {}): string {
  const [, ...rest] = sealed.split('.');
  const changed = Buffer.from(JSON.stringify({ ...headerOf(sealed), ...change })).toString('base64url');
  return [changed, ...rest].join('.');
}

function seal(text: string, protectedHeader: CompactJWEHeaderParameters, key: string): Promise<string> {
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader(protectedHeader)
    .encrypt(Buffer.from(key, 'base64url'));
}

describe('sealed cookies', () => {
  it('hold compact JWEs in which no token can be read, and open to the same bytes', async () => {
    await using world = await startSignedIn();
    for (const name of [ACCESS, REFRESH]) {
      expect(world.jar[name]).toMatch(/^[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/);
      const parts = (world.jar[name] ?? '').split('.');
      expect(parts.map((part) => Buffer.from(part, 'base64url').toString('latin1')).join()).not.toContain(
        'token',
      );
    }
    const response = await session(world, world.jar);
    await expectBearer(response, 'the-access-token');
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  it('count as absent and are cleared when a single character was changed', async () => {
    await using world = await startSignedIn();
    const value = world.jar[ACCESS] ?? '';
    for (let at = 0; at < value.length; at += 9) {
      const changed = value.slice(0, at) + (value[at] === 'A' ? 'B' : 'A') + value.slice(at + 1);
      const response = await session(world, { [ACCESS]: changed });
      expect(await response.json()).toEqual(NOBODY);
      expect(response.headers.getSetCookie()).toEqual(CLEARED.access);
    }
  });

  it.each<[what: string, environment: Environment, change: (jar: Jar) => Jar | Promise<Jar>]>([
    ['swapped', {}, (jar) => ({ [ACCESS]: jar[REFRESH], [REFRESH]: jar[ACCESS] })],
    ['sealed with a key that is not listed', {}, () => jarFrom({ COOKIE_KEYS: newKey() })],
    ['plain', {}, () => ({ [ACCESS]: 'access-1', [REFRESH]: 'refresh-1' })],
    [
      'sealed with a key that is not listed, although plain ones are accepted',
      { COOKIE_KEYS_ACCEPT_PLAIN: 'true' },
      () => jarFrom({ COOKIE_KEYS: newKey() }),
    ],
  ])('count as absent and are cleared when they are %s', async (_, environment, change) => {
    await using world = await startSignedIn({ COOKIE_KEYS: newKey(), ...environment });
    const response = await session(world, await change(world.jar));
    expect(await response.json()).toEqual(NOBODY);
    expectCleared(response);
  });

  it('are opened once for a request, whatever it does', async () => {
    await using world = await startSignedIn();
    using open = spyOn(CookieSeal.prototype, 'open');
    world.upstream.on(ME, ({ headers }) =>
      reply(headers.get('authorization') === 'Bearer access-2' ? 200 : 401, {})(),
    );
    expect((await session(world, world.jar)).status).toBe(200);
    expect(open).toHaveBeenCalledTimes(2);
  });

  it('are cleared by a refusal too', async () => {
    await using world = await startSignedIn();
    const response = await world.request('/api/music/models', { cookie: SIGNED_IN });
    expect(response.status).toBe(401);
    expectCleared(response);
  });

  it('stay when only the other one is unreadable', async () => {
    await using world = await startSignedIn();
    const response = await session(world, { ...world.jar, [REFRESH]: 'nonsense' });
    await expectBearer(response, 'the-access-token');
    expect(response.headers.getSetCookie()).toEqual(CLEARED.refresh);
  });

  it.each<[what: string, text: string, change: object, bearer: string | undefined]>([
    ['an empty token', '', {}, undefined],
    ['a line break', 'a\r\nb', {}, undefined],
    ['text that is not ASCII', 'töken', {}, undefined],
    ['no time', 'token', { exp: undefined }, undefined],
    ['a time ahead', 'token', { exp: 9_999_999_999 }, 'Bearer token'],
    ['a time that is past', 'token', { exp: 1 }, undefined],
    ['a text instead of a time', 'token', { exp: '9999999999' }, undefined],
    ['null instead of a time', 'token', { exp: null }, undefined],
  ])('are opened or not by what they hold: %s', async (_, text, change, bearer) => {
    const key = newKey();
    await using world = await startSignedIn({ COOKIE_KEYS: key });
    const original = headerOf(world.jar[ACCESS]);
    expect(original.exp).toBeNumber();
    const sealed = await seal(text, { ...original, ...change }, key);
    const response = await session(world, { [ACCESS]: sealed });
    expect(await response.json()).toEqual(bearer === undefined ? NOBODY : { bearer });
    expect(response.headers.getSetCookie()).toEqual(bearer === undefined ? CLEARED.access : []);
  });

  it.each([
    [{ alg: 'A256KW' }],
    [{ enc: 'A128GCM' }],
    [{ zip: 'DEF' }],
    [{ alg: 'none' }],
    [{ crit: ['x'], x: 1 }],
    [{ exp: 9_999_999_999 }],
  ])('cannot be changed without the key: %j', async (change) => {
    await using world = await startSignedIn();
    const response = await session(world, { [ACCESS]: forge(world.jar[ACCESS], change) });
    expect(await response.json()).toEqual(NOBODY);
    expect(response.headers.getSetCookie()).toEqual(CLEARED.access);
  });

  it.each([
    [2800, 200],
    [3000, 502],
  ])('grow by the seal, so that a token of %i characters gets %i', async (length, status) => {
    await using world = await startSignedIn();
    await using plain = await startSignedIn({});
    const tokens = { access_token: 'a'.repeat(length), refresh_token: 'r' };
    for (const { upstream } of [world, plain]) upstream.on(SIGN_IN, reply(200, tokens));
    expect((await signIn(plain)).status).toBe(200);
    const response = await signIn(world);
    if (status !== 200) return expectRefused(response, status, 'tokensTooLarge');
    expect(response.status).toBe(status);
    const sizes = response.headers.getSetCookie().map((cookie) => cookie.indexOf(';') - 1);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4096);
  });
});

describe('the expiry time of a sealed cookie', () => {
  const DAYS = 24 * 60 * 60;
  const start = Date.now();
  const after = (seconds: number) => setSystemTime(start + seconds * 1000);
  afterEach(() => void setSystemTime());

  it('is that of the access token in the access cookie, however long the browser keeps it', async () => {
    after(0);
    await using world = await startSignedIn();
    const access = { [ACCESS]: world.jar[ACCESS] };
    after(598);
    const early = await session(world, access);
    await expectBearer(early, 'the-access-token');
    expect(early.headers.getSetCookie()).toEqual([]);
    after(601);
    const late = await session(world, access);
    expect(await late.json()).toEqual(NOBODY);
    expect(late.headers.getSetCookie()).toEqual(CLEARED.access);
    const renewed = await session(world, world.jar);
    await expectBearer(renewed, 'access-2');
    expect(renewed.headers.getSetCookie()).toHaveLength(2);
  });

  it('is 30 days ahead in the refresh cookie', async () => {
    after(0);
    await using world = await startSignedIn();
    after(30 * DAYS + 1);
    const calls = world.upstream.calls.length;
    const late = await session(world, world.jar);
    expect(await late.json()).toEqual(NOBODY);
    expectCleared(late);
    expect(world.upstream.calls).toHaveLength(calls);
    after(30 * DAYS - 2);
    await expectBearer(await session(world, world.jar), 'access-2');
  });
});

describe('rotating the keys', () => {
  it('signs out nobody who has a cookie under a listed key, and seals with the first', async () => {
    const [older, newer] = [newKey(), newKey()];
    const jar = await jarFrom({ COOKIE_KEYS: older });
    await using world = await startSignedIn({ COOKIE_KEYS: `${newer},${older}` });
    await expectBearer(await session(world, jar), 'the-access-token');
    const renewed = storedTokens(await session(world, { [REFRESH]: jar[REFRESH] }));
    await using afterwards = await startSignedIn({ COOKIE_KEYS: newer });
    await expectBearer(await session(afterwards, renewed), 'access-2');
    const dropped = await session(afterwards, jar);
    expect(await dropped.json()).toEqual(NOBODY);
    expectCleared(dropped);
  });
});

describe('COOKIE_KEYS_ACCEPT_PLAIN', () => {
  const ENVIRONMENT = { COOKIE_KEYS: newKey(), COOKIE_KEYS_ACCEPT_PLAIN: 'true' };

  it('takes over cookies from before sealing was on, and seals them at the next refresh', async () => {
    const jar = await jarFrom({});
    await using world = await startSignedIn(ENVIRONMENT);
    await expectBearer(await session(world, jar), 'the-access-token');
    const renewed = storedTokens(await session(world, { [REFRESH]: jar[REFRESH] }));
    expect(renewed[REFRESH]).toMatch(/^[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/);
  });

  it('takes over a plain token that is a JWE of the upstream', async () => {
    const token = await seal('x', { alg: 'dir', enc: 'A256GCM', kid: 'of-the-upstream' }, newKey());
    await using world = await startSignedIn(ENVIRONMENT);
    await expectBearer(await session(world, { [ACCESS]: token }), token);
  });
});
