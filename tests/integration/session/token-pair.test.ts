import { beforeEach, describe, expect, it } from 'bun:test';
import {
  checkSession,
  expectRefused,
  ME,
  pair,
  REFRESH,
  reply,
  SIGN_IN,
  scriptSignIn,
  sentBack,
  signIn,
  TOKEN,
} from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { storedTokens } from '../../support/world.ts';

const BOTH_STEPS = [TOKEN, SIGN_IN];
const A = { access_token: 'a' };
const R = { refresh_token: 'r' };

const world = sharedWorld();
beforeEach(() => scriptSignIn(world));

describe('the token pair of a sign-in', () => {
  it.each<[where: string, status: number, body: object, maxAge: number]>([
    ['data, with its lifetime', 200, { data: { ...pair(1), expires_in: 60 }, expires_in: 7 }, 60],
    ['data, beside half a pair', 200, { ...A, data: pair(1) }, 900],
    ['the top level, beside a pair in data', 200, { ...pair(1), data: pair(2) }, 900],
    ['any success, such as a 201', 201, pair(1), 900],
  ])('is taken from %s', async (_, status, body, maxAge) => {
    world.upstream.on(SIGN_IN, reply(status, body));
    const response = await signIn(world);
    expect(response.status).toBe(200);
    expect(response.headers.getSetCookie()).toEqual([
      `svc_music_access=access-1; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax`,
      'svc_music_refresh=refresh-1; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
    ]);
  });

  it.each([
    [['1'], 1],
    [['1200'], 1200],
    [['"3600"'], 3600],
    [['59.9'], 59],
    [['34560000', '34560001', '1e300', '1e999'], 34_560_000],
    [['0', 'null', 'false', '""', '"soon"', '{}', '{"valueOf":1,"toString":1}', '-1', '0.5'], 900],
  ])('with an expires_in of %j keeps the access cookie for %i seconds', async (texts, seconds) => {
    for (const text of texts) {
      const body = `{"access_token":"a","refresh_token":"r","expires_in":${text}}`;
      world.upstream.on(SIGN_IN, () => new Response(body));
      const response = await signIn(world);
      expect(response.headers.getSetCookie()).toEqual([
        `svc_music_access=a; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax`,
        'svc_music_refresh=r; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
      ]);
    }
  });

  const NO_TOKENS = ['', 1, null, ['r'], 'a b', 'a\n', 'a\r\nset-cookie: x=y', 'a\0', 'a\x7f', 'é'];

  it.each<[what: string, bodies: unknown[]]>([
    ['it is not there', [{}, null, [], 'access-1', { accessToken: 'a', refreshToken: 'r' }]],
    ['only half of it is there', [A, R, { ...A, data: R }, { data: A }]],
    ['it is in the wrong place', [[{ ...A, ...R }], { data: [{ ...A, ...R }] }, { data: { data: pair(1) } }]],
    ['the access token is invalid', NO_TOKENS.map((token) => ({ ...R, access_token: token }))],
    ['the refresh token is invalid', NO_TOKENS.map((token) => ({ ...A, refresh_token: token }))],
  ])('is refused with 502 when %s', async (_, bodies) => {
    for (const body of bodies) {
      world.upstream.on(SIGN_IN, reply(200, body));
      await expectRefused(await signIn(world), 502, 'signInFailed');
    }
    expect(world.upstream.calls).toEqual(bodies.flatMap(() => BOTH_STEPS));
  });

  it.each(['', 'not JSON', '{"access_token":"a","refresh_token":"r"', '{"__proto__":{"access_token":"a"}}'])(
    'is refused with 502 when the body is %j',
    async (body) => {
      world.upstream.on(SIGN_IN, () => new Response(body));
      await expectRefused(await signIn(world), 502, 'signInFailed');
      expect(world.upstream.calls).toEqual(BOTH_STEPS);
    },
  );

  it.each([
    String.fromCharCode(...Array.from({ length: 0x7e - 0x20 }, (_, index) => 0x21 + index)),
    ...['1|abc', '100%', '{"a":1}', '[1]', '12345', 'true', 'a+b', 'a%2Bb', 'a;b,c', '"quoted"'],
  ])('reaches the upstream unchanged after a round through the cookies: %s', async (token) => {
    scriptSignIn(world, { access_token: token, refresh_token: `r${token}` });
    world.upstream.on(ME, reply(401)).on(REFRESH, reply(400));
    const cookie = sentBack(await signIn(world));
    expect((await checkSession(world, cookie)).status).toBe(401);
    expect(world.upstream.last(ME).headers.get('authorization')).toBe(`Bearer ${token}`);
    expect(JSON.parse(world.upstream.last(REFRESH).body)).toEqual({ refresh_token: `r${token}` });
  });

  it.each([
    ['name and value of the access cookie', 'access', 'a'.repeat(4096 - 16)],
    ['name and value of the refresh cookie', 'refresh', 'r'.repeat(4096 - 17)],
    ['a value that the cookie escapes', 'access', '%'.repeat((4096 - 16) / 3)],
  ])('may take 4096 bytes of %s and no more, because a browser would drop it', async (_, name, token) => {
    scriptSignIn(world, { ...pair(1), [`${name}_token`]: token });
    const response = await signIn(world);
    expect(response.status).toBe(200);
    const cookie = `svc_music_${name}`;
    expect(storedTokens(response)[cookie]).toBe(token);
    const stored = response.headers.getSetCookie().find((header) => header.startsWith(cookie));
    expect(stored?.split(';')[0]).toHaveLength(4096 + '='.length);

    world.upstream.on(SIGN_IN, reply(200, { ...pair(1), [`${name}_token`]: `a${token}` }));
    await expectRefused(await signIn(world), 502, 'tokensTooLarge');
    expect(world.log.at(-1)).toContain('"reason":"tokensTooLarge"');
    expect(world.log.at(-1)).not.toContain(token.slice(0, 20));
  });
});
