import { describe, expect, it, setSystemTime } from 'bun:test';
import type { Context } from 'elysia';
import { seal } from '../../src/gateway/crypto/seal.ts';
import { type FoundTokens, SessionCookies } from '../../src/gateway/session/cookies.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { testSettings } from '../support/world.ts';

const ACCESS = 'svc_music_access';
const REFRESH = 'svc_music_refresh';
const TOKENS = { accessToken: 'the-access-token', refreshToken: 'the-refresh-token' };
const PAIR = { ...TOKENS, expiresInSeconds: 600 };
const NOTHING = { accessToken: undefined, refreshToken: undefined, isAmbiguous: false, isUnreadable: false };
const REFRESH_SECONDS = 30 * 24 * 60 * 60;
const KEY = Buffer.alloc(32, 1);
const SEALED = { COOKIE_KEYS: KEY.toString('base64url') };
const OF_OLDER = { COOKIE_KEYS: Buffer.alloc(32, 2).toString('base64url') };
const ROTATED = { COOKIE_KEYS: `${SEALED.COOKIE_KEYS},${OF_OLDER.COOKIE_KEYS}` };
const PLAIN_TOO = { ...SEALED, COOKIE_KEYS_ACCEPT_PLAIN: 'true' };
const PREFIXED = { COOKIE_PREFIX: '__Host-Http-', COOKIE_SECURE: 'true' };
const BOTH = { ...SEALED, ...PREFIXED };

const cookiesWith = (environment: Environment) => new SessionCookies(testSettings(environment).cookies);

/** What a gateway with these settings finds in a Cookie header. */
async function read(cookie: string, environment: Environment = {}) {
  const request = new Request('http://gateway.test', { headers: { cookie } });
  const cookies = cookiesWith(environment);
  return cookies.areSealed ? cookies.unseal(request) : cookies.read(request);
}

/** The Cookie header of a browser with the cookies that a gateway with these settings has stored. */
async function stored(environment: Environment, change: Partial<typeof PAIR> = {}): Promise<string> {
  const set: Context['set'] = { headers: {} };
  await cookiesWith(environment).store(set, { ...PAIR, ...change });
  const lines = [set.headers['set-cookie'] ?? []].flat().map(String);
  return lines.map((line) => line.slice(0, line.indexOf(';'))).join('; ');
}

// Their attributes: integration/session/sign-in.test.ts and hardened.test.ts.
it.each<[what: string, environment: Environment, name: keyof typeof TOKENS, token: string]>([
  ['access, escaped', {}, 'accessToken', '%'.repeat((4096 - 16) / 3)],
  ['refresh', {}, 'refreshToken', 'r'.repeat(4096 - 17)],
  ['access, sealed', SEALED, 'accessToken', 'a'.repeat(2900)],
])('cookies are stored up to the 4096 bytes that browsers keep: %s', async (_, environment, name, token) => {
  const [access = '', refresh = ''] = (await stored(environment, { [name]: token })).split('; ');
  const { length } = name === 'accessToken' ? access : refresh;
  expect(length - '='.length).toBeWithin(environment === SEALED ? 3900 : 4096, 4097);
  const longer = token + token.slice(0, environment === SEALED ? 150 : 1);
  const refused = stored(environment, { [name]: longer });
  await expect(refused).rejects.toMatchObject({ key: 'tokensTooLarge', status: 502 });
});

describe('a token in a plain cookie', () => {
  /** All that a token may consist of. */
  const VISIBLE_ASCII = String.fromCharCode(...Array.from({ length: 94 }, (_, index) => 0x21 + index));

  it('comes back as it was stored', async () => {
    for (const token of [VISIBLE_ASCII, '100%', '{"a":1}', '12345', 'a%2Bb', '"q"']) {
      const pair = { accessToken: token, refreshToken: `r${token}` };
      expect(await read(await stored({}, pair)), token).toEqual({ ...NOTHING, ...pair });
    }
  });

  /** In these headers `@` stands for the prefix, and ` | ` separates one from the next. */
  // A cookie that is no token does not hide the other, unlike one that was sent twice.
  const both = (accessToken?: string) => ({ ...NOTHING, accessToken, refreshToken: 'r1' });
  it.each<[how: string, found: FoundTokens, headers: string]>([
    ['with quotes', both('"half'), '@access="half'],
    ['with signs of cookies', both('a=b==,x=y'), '@access=a=b==,x=y'],
    [
      'among others',
      both('a1'),
      `;;; ;@access=a1;; | =; =x; @access=a1 | ${'o=x; '.repeat(1500)}@access=a1 | __proto__=x; @access=a1 |
       o=\x80\xff; @access=a1 | x@access=x; @access=a1; @access2=y | @ACCESS=x; @access=a1 | @access; @access=a1 |
       o="@access=x"; @access=a1`,
    ],
    [
      'as absent when it is no token, or has another name',
      both(),
      `x@access=x | @access | @Access=x | @%61ccess=x | @access=; | @access=a%20b | @access=a b | @access="a b" |
       @access=a%0d%0aX:%201 | @access=a%00 | @access=a%7fb | @access=a\x7fb | @access=\xe9 | @access=%C3%A9 |
       @access=%c0%af`,
    ],
    [
      'as absent when there are two, as another host may have set one',
      { ...NOTHING, isAmbiguous: true },
      `@access=one; @access=one | @access=one;\t @access =two | @access=; @access=two | @access=one; @refresh=r2 |
       @access=one; ${'o=x; '.repeat(1500)}@access=two`,
    ],
  ])('is read %s', async (_, found, headers) => {
    for (const each of headers.split(/\s+\|\s+/)) {
      const sent = `${each}; @refresh=r1`;
      expect(await read(sent.replaceAll('@', 'svc_music_')), each).toEqual(found);
      expect(await read(sent.replaceAll('@', '__Host-Http-svc_music_'), PREFIXED), each).toEqual(found);
    }
  });

  it.each(['', '__Host-', '__Host-Http-'])('is not taken without the prefix "%s"', async (prefix) => {
    const environment = prefix ? { COOKIE_PREFIX: prefix, COOKIE_SECURE: 'true' } : {};
    const prefixes = ['', '__host-', '__Host-', '__Host-Http-', '__Secure-', '__Http-'];
    const others = prefixes.filter((other) => other !== prefix);
    const tossed = others.map((other) => `${other}${ACCESS}=tossed; ${other}${REFRESH}=tossed`).join('; ');
    expect(await read(tossed, environment)).toEqual(NOTHING);
    const beside = await read(`${tossed}; ${await stored(environment)}; ${tossed}`, environment);
    expect(beside).toEqual({ ...NOTHING, ...TOKENS });
  });
});

describe('sealed cookies', () => {
  /** Values with another protected header, without the key. */
  const forge = (jar: string, change: object) =>
    jar.replace(/(?<==)[^.;]+/g, (head) => {
      const changed = JSON.stringify({ ...JSON.parse(Buffer.from(head, 'base64url').toString()), ...change });
      return Buffer.from(changed).toString('base64url');
    });

  it('count as absent when a single character was changed', async () => {
    const [access = ''] = (await stored(SEALED)).split('; ');
    for (let at = `${ACCESS}=`.length; at < access.length; at += 3) {
      const changed = access.slice(0, at) + (access[at] === 'A' ? 'Q' : 'A') + access.slice(at + 1);
      const { accessToken, isUnreadable } = await read(changed, SEALED);
      expect([accessToken, isUnreadable], String(at)).toEqual([undefined, true]);
    }
  });

  it.each<[what: string, environment: Environment, change: (jar: string) => string | Promise<string>]>([
    ['swapped', SEALED, (jar) => jar.replace(/access(.*)refresh/, 'refresh$1access')],
    ['nonsense', SEALED, () => `${ACCESS}=nonsense; ${REFRESH}=eyJ.a.b.c.d`],
    ['sealed with a key that is not listed', SEALED, () => stored(OF_OLDER)],
    ['sealed so, where plain ones are accepted', PLAIN_TOO, () => stored(OF_OLDER)],
    ['plain', SEALED, () => stored({})],
    ['sealed for another name', BOTH, (jar) => jar.replaceAll('svc', '__Host-Http-svc')],
    ['changed to no algorithm', SEALED, (jar) => forge(jar, { alg: 'none' })],
    ['changed to last longer', SEALED, (jar) => forge(jar, { exp: 9e9 })],
  ])('count as absent when they are %s', async (_, environment, change) => {
    const found = await read(await change(await stored(SEALED)), environment);
    expect(found).toEqual({ ...NOTHING, isUnreadable: true });
    expect(await read('', environment)).toEqual(NOTHING);
  });

  it('expire with their Max-Age, however long the browser keeps them', async () => {
    const start = 1_700_000_000_000;
    setSystemTime(start);
    const jar = await stored(SEALED);
    const { refreshToken } = TOKENS;
    for (const [seconds, found] of [
      [599, TOKENS],
      [600, { refreshToken }],
      [REFRESH_SECONDS - 1, { refreshToken }],
      [REFRESH_SECONDS, { isUnreadable: true }],
    ] as const) {
      setSystemTime(start + seconds * 1000);
      expect(await read(jar, SEALED)).toEqual({ ...NOTHING, ...found });
    }
  });

  it('open with every listed key, and are sealed with the first, so that a rotation signs nobody out', async () => {
    expect(await read(await stored(OF_OLDER), ROTATED)).toEqual({ ...NOTHING, ...TOKENS });
    expect(await read(await stored(ROTATED), SEALED)).toEqual({ ...NOTHING, ...TOKENS });
  });

  it('let plain ones count too with COOKIE_KEYS_ACCEPT_PLAIN, also JWEs of the upstream', async () => {
    const jwe = await seal('x', KEY, { kid: 'of-the-upstream' });
    const found = await read(`${ACCESS}=${jwe}; ${REFRESH}=refresh-1`, PLAIN_TOO);
    expect(found).toEqual({ ...NOTHING, accessToken: jwe, refreshToken: 'refresh-1' });
    expect(await stored(PLAIN_TOO)).not.toContain(TOKENS.accessToken);
  });
});
