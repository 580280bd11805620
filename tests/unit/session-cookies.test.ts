import { afterEach, describe, expect, it, setSystemTime } from 'bun:test';
import type { Context } from 'elysia';
import { decodeProtectedHeader } from 'jose';
import { seal } from '../../src/gateway/http/seal.ts';
import { SessionCookies } from '../../src/gateway/session/cookies.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { testSettings } from '../support/world.ts';

const ACCESS = 'svc_music_access';
const REFRESH = 'svc_music_refresh';
const TOKENS = { accessToken: 'the-access-token', refreshToken: 'the-refresh-token' };
const PAIR = { ...TOKENS, expiresInSeconds: 600 };
const NOTHING = { accessToken: undefined, refreshToken: undefined, isAmbiguous: false, unreadable: [] };
const REFRESH_SECONDS = 30 * 24 * 60 * 60;
const KEY = Buffer.alloc(32, 1);
const OLDER = Buffer.alloc(32, 2).toString('base64url');
const SEALED = { COOKIE_KEYS: KEY.toString('base64url') };
const ROTATED = { COOKIE_KEYS: `${SEALED.COOKIE_KEYS},${OLDER}` };
const PLAIN_TOO = { ...SEALED, COOKIE_KEYS_ACCEPT_PLAIN: 'true' };
const PREFIXED = { COOKIE_PREFIX: '__Host-Http-', COOKIE_SECURE: 'true' };

/** The values of the two cookies. */
type Jar = readonly [access: string, refresh: string];

function cookiesWith(environment: Environment) {
  const addresses = { UPSTREAM_URL: 'http://upstream.test', IDP_URL: 'http://idp.test' };
  return new SessionCookies(testSettings({ ...addresses, ...environment }).cookies);
}

/** What a gateway with these settings finds in a Cookie header. */
async function read(cookie: string, environment: Environment = {}) {
  return cookiesWith(environment).read(new Request('http://gateway.test', { headers: { cookie } }));
}

/** The Set-Cookie headers of a gateway with these settings; without a pair, of one that clears the cookies. */
async function written(environment: Environment, pair?: typeof PAIR): Promise<string[]> {
  const set: Context['set'] = { headers: {} };
  if (pair) await cookiesWith(environment).store(set, pair);
  else cookiesWith(environment).clear(set);
  return [set.headers['set-cookie'] ?? []].flat().map(String);
}

async function store(environment: Environment, change: Partial<typeof PAIR> = {}): Promise<Jar> {
  const lines = await written(environment, { ...PAIR, ...change });
  const [access = '', refresh = ''] = lines.map((line) => /=([^;]*)/.exec(line)?.[1] ?? '');
  return [access, refresh];
}

function header([access, refresh]: Jar, prefix = ''): string {
  return `${prefix}${ACCESS}=${access}; ${prefix}${REFRESH}=${refresh}`;
}

describe.each<[kind: string, sealing: Environment]>([
  ['plain', {}],
  ['sealed', SEALED],
])('%s session cookies', (_, sealing) => {
  it.each<[environment: Environment, prefix: string, attributes: string]>([
    [{}, '', 'HttpOnly; SameSite=Lax'],
    [{ COOKIE_SAME_SITE: 'strict' }, '', 'HttpOnly; SameSite=Strict'],
    [{ COOKIE_SECURE: 'true' }, '', 'Secure; HttpOnly; SameSite=Lax'],
    [{ COOKIE_SECURE: 'false', NODE_ENV: 'production' }, '', 'Secure; HttpOnly; SameSite=Lax'],
    [{ COOKIE_PREFIX: '__Host-', COOKIE_SECURE: 'true' }, '__Host-', 'Secure; HttpOnly; SameSite=Lax'],
    [PREFIXED, '__Host-Http-', 'Secure; HttpOnly; SameSite=Lax'],
  ])('have the path / and no domain, and with %j name and attributes', async (chosen, prefix, attributes) => {
    const environment = { ...chosen, ...sealing };
    const lines = (values: Jar, accessSeconds: number, refreshSeconds: number) => [
      `${prefix}${ACCESS}=${values[0]}; Path=/; Max-Age=${accessSeconds}; ${attributes}`,
      `${prefix}${REFRESH}=${values[1]}; Path=/; Max-Age=${refreshSeconds}; ${attributes}`,
    ];
    const hide = (text: string) => text.replace(/ey[\w.-]{50,}/, 'SEALED');
    const jar = await store(environment);
    const values: Jar = sealing === SEALED ? ['SEALED', 'SEALED'] : ['the-access-token', 'the-refresh-token'];
    const set = (await written(environment, PAIR)).map(hide);
    expect(set).toEqual(lines(values, 600, REFRESH_SECONDS));
    expect(await written(environment)).toEqual(lines(['', ''], 0, 0));
    expect(await read(header(jar, prefix), environment)).toEqual({ ...NOTHING, ...TOKENS });
  });
});

describe('a cookie of 4096 bytes with its name', () => {
  it.each<[what: string, environment: Environment, name: keyof typeof TOKENS, token: string]>([
    ['access', {}, 'accessToken', 'a'.repeat(4096 - 16)],
    ['refresh', {}, 'refreshToken', 'r'.repeat(4096 - 17)],
    ['access, escaped', {}, 'accessToken', '%'.repeat((4096 - 16) / 3)],
    ['refresh, prefixed', PREFIXED, 'refreshToken', 'r'.repeat(4096 - 17 - 12)],
    ['access, sealed', SEALED, 'accessToken', 'a'.repeat(2900)],
  ])(
    'is stored, and a longer one is refused because a browser would drop it: %s',
    async (_, environment, name, token) => {
      const [access = '', refresh = ''] = await written(environment, { ...PAIR, [name]: token });
      const length = (name === 'accessToken' ? access : refresh).indexOf(';') - 1;
      if (environment === SEALED) expect(length).toBeWithin(3900, 4097);
      else expect(length).toBe(4096);
      const longer = token + token.slice(0, environment === SEALED ? 150 : 1);
      const stored = written(environment, { ...PAIR, [name]: longer });
      await expect(stored).rejects.toMatchObject({ key: 'tokensTooLarge', status: 502 });
    },
  );
});

describe('a token in a plain cookie', () => {
  /** All that a token may consist of. */
  const VISIBLE_ASCII = String.fromCharCode(
    ...Array.from({ length: 0x7e - 0x20 }, (_, index) => 0x21 + index),
  );
  const STORED = [VISIBLE_ASCII, '1|abc', '100%', '{"a":1}', '[1]', '12345', 'a+b', 'a%2Bb', 'a;b,c', '"q"'];

  it.each(STORED)('comes back as it was stored: %s', async (token) => {
    const pair = { accessToken: token, refreshToken: `r${token}` };
    expect(await read(header(await store({}, pair)))).toEqual({ ...NOTHING, ...pair });
  });

  it.each<[what: string, found: string | undefined, values: string[]]>([
    ['with quotes', '"half', ['"half']],
    ['escaped JSON', '{"a":1}', ['%7B%22a%22%3A1%7D', '{"a":1}']],
    ['with signs of cookies', 'a=b==,x=y', ['a=b==,x=y']],
    ['absent when empty', undefined, ['', ' ', ';']],
    [
      'absent with an escaped control character',
      undefined,
      ['a%0d%0aX:%201', '%0a', 'a%00', 'a%09b', 'a%7fb'],
    ],
    ['absent with white space', undefined, ['a%20b', 'a b', '"a b"', 'a\tb', 'a\x7fb']],
    ['absent outside ASCII', undefined, ['\xe9', '\xc3\xa9', '%C3%A9', '%E2%80%A8', '%c0%af', '%ff']],
  ])('is read %s', async (_, accessToken, values) => {
    for (const value of values) {
      expect(await read(`${ACCESS}=${value}`), value).toEqual({ ...NOTHING, accessToken });
      // One that is no token does not hide the other.
      const both = await read(`${ACCESS}=${value}; ${REFRESH}=r1`);
      expect(both, value).toEqual({ ...NOTHING, accessToken, refreshToken: 'r1' });
    }
  });

  it.each<[what: string, headers: string[]]>([
    ['white space and separators', ['  @  ', ';;; ;@;;', '=; =x; @']],
    ['names of object properties', ['__proto__=x; constructor=y; @; toString=z', '$Version=1; @; $Path=/']],
    ['bad values', ['other; @', 'other=\x80\xff; @', 'other=%0d%0aX-Injected:%201; @']],
    ['very many others', [`${'other=x; '.repeat(1500)}@`]],
    ['similar names', ['xsvc_music_access=x; @; svc_music_access2=y', 'svc_music_access; @']],
    ['its name in other letters', ['SVC_MUSIC_ACCESS=x; @', '%73vc_music_access=x; @']],
    ['its name in another value', ['@; other=svc_music_access=x', 'other="svc_music_access=x"; @']],
  ])('is found once among %s, and nothing without it', async (_, headers) => {
    for (const each of headers) {
      const found = await read(each.replace('@', `${ACCESS}=a1`));
      expect(found, each).toEqual({ ...NOTHING, accessToken: 'a1' });
      expect(await read(each.replace('@', '')), each).toEqual(NOTHING);
    }
  });

  it.each(['', '__Host-', '__Host-Http-'])(
    'is not taken from a cookie without the prefix "%s"',
    async (prefix) => {
      const environment = prefix ? { COOKIE_PREFIX: prefix, COOKIE_SECURE: 'true' } : {};
      const prefixes = ['', '__host-', '__Host-', '__Host-Http-', '__Secure-', '__Http-'];
      const others = prefixes.filter((other) => other !== prefix);
      const tossed = others.map((other) => header(['tossed', 'tossed'], other)).join('; ');
      expect(await read(tossed, environment)).toEqual(NOTHING);
      const beside = `${tossed}; ${header(['a1', 'r1'], prefix)}; ${tossed}`;
      expect(await read(beside, environment)).toEqual({ ...NOTHING, accessToken: 'a1', refreshToken: 'r1' });
    },
  );
});

describe('a session cookie that was sent twice', () => {
  const [ONE, TWO] = [`${ACCESS}=one`, `${ACCESS}=two`];

  it.each<[what: string, cookie: string]>([
    ['with two values', `${ONE}; ${TWO}`],
    ['with other white space', `${ONE};\t svc_music_access =two`],
    ['with the same value', `${ONE}; ${ONE}; svc_music_refresh=r1`],
    ['once empty', `${ACCESS}=; ${TWO}`],
    ['once with no token', `${ACCESS}=%00; ${TWO}`],
    ['after the other one', `${ONE}; ${REFRESH}=r1; ${REFRESH}=r2`],
    ['far apart', `${ONE}; ${'other=x; '.repeat(1500)}${TWO}`],
  ])('is no session, because another host may have set one of them: %s', async (_, cookie) => {
    expect(await read(cookie)).toEqual({ ...NOTHING, isAmbiguous: true });
    const prefixed = cookie.replaceAll('svc_music', '__Host-Http-svc_music');
    expect(await read(prefixed, PREFIXED)).toEqual({ ...NOTHING, isAmbiguous: true });
  });
});

describe('sealed cookies', () => {
  afterEach(() => void setSystemTime());

  /** A value with another protected header, without the key. */
  function forge(sealed: string, change: object): string {
    const [, ...rest] = sealed.split('.');
    const changed = JSON.stringify({ ...decodeProtectedHeader(sealed), ...change });
    return [Buffer.from(changed).toString('base64url'), ...rest].join('.');
  }

  it('are JWEs in which no token can be read', async () => {
    for (const value of await store(SEALED)) {
      expect(value).toMatch(/^[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/);
      const parts = value.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'));
      expect(parts.join()).not.toContain('token');
    }
  });

  it('count as absent when a single character was changed', async () => {
    const [access] = await store(SEALED);
    for (let at = 0; at < access.length; at += 3) {
      const changed = access.slice(0, at) + (access[at] === 'A' ? 'B' : 'A') + access.slice(at + 1);
      expect(await read(`${ACCESS}=${changed}`, SEALED), String(at)).toEqual({
        ...NOTHING,
        unreadable: [ACCESS],
      });
    }
  });

  it.each<[what: string, environment: Environment, change: (jar: Jar) => Jar | Promise<Jar>]>([
    ['swapped', SEALED, ([access, refresh]) => [refresh, access]],
    ['sealed with a key that is not listed', SEALED, () => store({ COOKIE_KEYS: OLDER })],
    ['sealed so, where plain ones are accepted', PLAIN_TOO, () => store({ COOKIE_KEYS: OLDER })],
    ['plain', SEALED, () => store({})],
    ['sealed for another name', SEALED, () => store({ ...SEALED, ...PREFIXED })],
    ...[
      { alg: 'A256KW' },
      { alg: 'none' },
      { enc: 'A128GCM' },
      { zip: 'DEF' },
      { crit: ['x'], x: 1 },
      { exp: 9e9 },
    ].map((forged): [string, Environment, (jar: Jar) => Jar] => [
      `changed to ${JSON.stringify(forged)}`,
      SEALED,
      ([access, refresh]) => [forge(access, forged), forge(refresh, forged)],
    ]),
  ])('count as absent when they are %s', async (_, environment, change) => {
    const found = await read(header(await change(await store(SEALED))), environment);
    expect(found).toEqual({ ...NOTHING, unreadable: [ACCESS, REFRESH] });
  });

  it('are read one by one', async () => {
    const [access] = await store(SEALED);
    const found = await read(header([access, 'nonsense']), SEALED);
    expect(found).toEqual({ ...NOTHING, accessToken: TOKENS.accessToken, unreadable: [REFRESH] });
  });

  it.each<[what: string, text: string, change: Record<string, string | number>, token: string | undefined]>([
    ['a token', 'token', {}, 'token'],
    ['an empty token', '', {}, undefined],
    ['a line break', 'a\r\nb', {}, undefined],
    ['text that is not ASCII', 'töken', {}, undefined],
    ['a time ahead', 'token', { exp: 9_999_999_999 }, 'token'],
    ['a time that is past', 'token', { exp: 1 }, undefined],
    ['a text instead of a time', 'token', { exp: '9999999999' }, undefined],
  ])('are opened or not by what they hold: %s', async (_, text, change, accessToken) => {
    const { typ, kid, exp, cookie } = decodeProtectedHeader((await store(SEALED))[0]);
    const own = { typ: String(typ), kid: String(kid), exp: Number(exp), cookie: String(cookie) };
    const value = await seal(text, KEY, { ...own, ...change });
    const unreadable = accessToken ? [] : ['svc_music_access'];
    const found: unknown = await read(`${ACCESS}=${value}`, SEALED);
    expect(found).toEqual({ ...NOTHING, accessToken, unreadable });
    const withoutTime = await seal('token', KEY, { typ: own.typ, kid: own.kid, cookie: own.cookie });
    expect((await read(`${ACCESS}=${withoutTime}`, SEALED)).unreadable).toEqual([ACCESS]);
  });

  it.each<[name: string, seconds: number]>([
    [ACCESS, 600],
    [REFRESH, REFRESH_SECONDS],
  ])('expire with their Max-Age, however long the browser keeps them: %s', async (name, seconds) => {
    const start = 1_700_000_000_000;
    setSystemTime(start);
    const [access, refresh] = await store(SEALED);
    const cookie = `${name}=${name === ACCESS ? access : refresh}`;
    setSystemTime(start + (seconds - 1) * 1000);
    expect((await read(cookie, SEALED)).unreadable).toEqual([]);
    setSystemTime(start + seconds * 1000);
    expect((await read(cookie, SEALED)).unreadable).toHaveLength(1);
  });

  it('open with every listed key, and are sealed with the first, so that a rotation signs nobody out', async () => {
    const older = header(await store({ COOKIE_KEYS: OLDER }));
    expect(await read(older, ROTATED)).toEqual({ ...NOTHING, ...TOKENS });
    const newer = header(await store(ROTATED));
    expect(await read(newer, SEALED)).toEqual({ ...NOTHING, ...TOKENS });
    expect((await read(older, SEALED)).unreadable).toEqual([ACCESS, REFRESH]);
  });

  it('take over plain ones with COOKIE_KEYS_ACCEPT_PLAIN, also a token that is a JWE of the upstream', async () => {
    const jwe = await seal('x', KEY, { kid: 'of-the-upstream' });
    const cookie = header([jwe, 'refresh-1']);
    expect(await read(cookie, PLAIN_TOO)).toEqual({
      ...NOTHING,
      accessToken: jwe,
      refreshToken: 'refresh-1',
    });
    for (const value of await store(PLAIN_TOO)) expect(value).toContain('..');
  });
});
