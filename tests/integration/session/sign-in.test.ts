import { beforeEach, describe, expect, it } from 'bun:test';
import type { MessageKey } from '../../../src/gateway/http/messages.ts';
import type { TokenProblem } from '../../../src/gateway/record/request-record.ts';
import * as calls from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { REFRESH_ONLY, SIGNED_IN, startWorld, type World } from '../../support/world.ts';

const { accept, checkSession, expectRefused, GRANT, ME, pair } = calls;
const { REFRESH, reply, SIGN_IN, scriptSignIn, signIn, TOKEN } = calls;

const world = sharedWorld();
beforeEach(() => scriptSignIn(world, { ...pair(1), expires_in: 1200 }));

/** The form that the identity provider's token endpoint has received. */
function formSent({ upstream }: World) {
  return Object.fromEntries(new URLSearchParams(upstream.last(TOKEN).body));
}

describe('POST /api/auth/idp', () => {
  /** As short as it may be. */
  const SHORT = { code: 'c', code_verifier: 'v'.repeat(43) };

  it('sets both session cookies; the tokens are nowhere else, and nothing else of the browser is sent on', async () => {
    const foreign = 'from-the-browser';
    const names = ['access_token', 'client_id', 'redirect_uri', 'grant_type'];
    const grant = { ...SHORT, ...Object.fromEntries(names.map((name) => [name, foreign])) };
    const headers = { authorization: `Bearer ${foreign}` };
    const response = await signIn(world, grant, { cookie: `${SIGNED_IN}; ${SIGNED_IN}`, headers });
    expect([response.status, await response.text()]).toEqual([200, '{"ok":true}']);
    expect(response.headers.getSetCookie()).toEqual([
      'svc_music_access=access-1; Path=/; Max-Age=1200; HttpOnly; SameSite=Lax',
      'svc_music_refresh=refresh-1; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
    ]);
    response.headers.delete('set-cookie');
    expect(JSON.stringify([...response.headers])).not.toMatch(/access-1|refresh-1|identity-1/);
    const form =
      `grant_type=authorization_code&code=c&code_verifier=${SHORT.code_verifier}&client_id=studio` +
      '&redirect_uri=http%3A%2F%2Fstudio.test%2Fcallback';
    const sent = world.upstream.received.map((each) => [
      each.target,
      each.headers.get('content-type'),
      each.body,
    ]);
    expect(sent).toEqual([
      ['/oauth/token', 'application/x-www-form-urlencoded', form],
      ['/v1/auth/idp', 'application/json', '{"access_token":"identity-1"}'],
    ]);
    for (const received of world.upstream.received) {
      expect(received.headers.get('accept')).toBe('application/json');
      for (const name of ['cookie', 'origin', 'authorization']) expect(received.headers.get(name)).toBeNull();
    }
    expect(world.log).toEqual([]);
  });

  it('sends what it got and its settings unchanged, in UPSTREAM_SIGN_IN_FIELD too', async () => {
    const code = ' 4/0A+b&c=d%20é"\u{1f3b5}'.padEnd(4096, 'c');
    const grant = { code, code_verifier: '~._-+ '.padEnd(4096, 'v') };
    const token = '{"a":1}|100%\\u002b';
    const redirectUri = 'https://studio.test/callback?next=%2Fmusic&x=1';
    await using other = startWorld({
      IDP_CLIENT_ID: 'a client & more',
      IDP_REDIRECT_URI: redirectUri,
      UPSTREAM_SIGN_IN_FIELD: 'identity_token',
    });
    other.upstream.on(TOKEN, reply(200, { access_token: token })).on(SIGN_IN, reply(200, pair(1)));
    expect((await signIn(other, grant)).status).toBe(200);
    expect(formSent(other)).toEqual({
      grant_type: 'authorization_code',
      ...grant,
      client_id: 'a client & more',
      redirect_uri: redirectUri,
    });
    expect(JSON.parse(other.upstream.last(SIGN_IN).body)).toEqual({ identity_token: token });
  });

  const NO_TEXTS = [undefined, '', 10 ** 50, Array(43).fill('x'), { length: 43 }];
  const grantsWith = (field: string, values: unknown[]) =>
    [...NO_TEXTS, ...values].map((value) => JSON.stringify({ ...GRANT, [field]: value }));

  it.each<[key: MessageKey, bodies: string[]]>([
    ['codeInvalid', grantsWith('code', ['c'.repeat(4097)])],
    ['codeVerifierInvalid', grantsWith('code_verifier', ['v'.repeat(42), 'v'.repeat(4097)])],
    ['codeInvalid', [`{"__proto__":${JSON.stringify(GRANT)}}`]],
  ])('refuses a wrong field with %s, and calls nobody', async (key, bodies) => {
    const headers = { 'content-type': 'application/json' };
    for (const body of bodies) {
      // The text is the same whatever was sent, so it does not repeat it.
      await expectRefused(await world.request('/api/auth/idp', { method: 'POST', headers, body }), 400, key);
    }
    expect([world.upstream.calls, world.log]).toEqual([[], []]);
  });
});

describe('a redirect URI', () => {
  /** Public tracks may be played at the showcase, but nobody signs in there when the others are listed. */
  const [STUDIO, PLAYER, SHOWCASE] = [
    'http://studio.test',
    'http://player.test:8080',
    'http://showcase.test',
  ];
  const LIST = `${STUDIO}/callback, ${PLAYER}/?from=login`;
  const ELSEWHERE = 'https://elsewhere.test/callback';

  it.each([
    [LIST, STUDIO, `${STUDIO}/callback`],
    [LIST, PLAYER, `${PLAYER}/?from=login`],
    [LIST, SHOWCASE, undefined],
    [ELSEWHERE, SHOWCASE, ELSEWHERE],
  ])('of %s is, for a page of %s, %s', async (IDP_REDIRECT_URI, origin, redirect_uri) => {
    const ALLOWED_ORIGINS = [STUDIO, PLAYER, SHOWCASE].join(',');
    await using listed = startWorld({ ALLOWED_ORIGINS, IDP_REDIRECT_URI });
    scriptSignIn(listed);
    const response = await signIn(listed, GRANT, { origin });
    if (redirect_uri) return expect(formSent(listed)).toMatchObject({ redirect_uri });
    await expectRefused(response, 403, 'signInNotSetUp');
    expect(listed.upstream.calls).toEqual([]);
  });
});

/** The browser and both servers send it everywhere; no refusal may show it. */
const SECRET = 'secret';
const SECRET_GRANT = { code: `${SECRET}-code`, code_verifier: SECRET.repeat(8) };
const SECRET_PAIR = { access_token: `${SECRET}-access`, refresh_token: `${SECRET}-refresh` };
const QUOTE = { ...SECRET_PAIR, error_description: SECRET, message: SECRET };

type Facts = { readonly oauthError?: string; readonly tokenProblem?: TokenProblem };
type Row = [of: string, given: number, status: number, reason: MessageKey, noted: Facts, body: unknown];
const INVALID_CLIENT = { oauthError: 'invalid_client' };
const NO_CLIENT = { error: 'invalid_client' };

// When a server is away or late: relay/every-route.test.ts. What is a pair: unit/token-pair.test.ts.
it.each<Row>([
  [TOKEN, 400, 400, 'signInRefused', { oauthError: 'invalid_grant' }, { ...QUOTE, error: 'invalid_grant' }],
  [TOKEN, 429, 429, 'signInRefused', { oauthError: 'other' }, { error: SECRET }],
  [TOKEN, 401, 401, 'signInRefused', {}, 'invalid_client'],
  [TOKEN, 307, 401, 'signInRefused', {}, { access_token: 'identity-1' }],
  [TOKEN, 500, 500, 'identityProviderFailed', {}, QUOTE],
  [TOKEN, 500, 500, 'clientRefused', INVALID_CLIENT, NO_CLIENT],
  [TOKEN, 200, 401, 'clientRefused', { ...INVALID_CLIENT, tokenProblem: 'no access_token' }, NO_CLIENT],
  [TOKEN, 200, 401, 'signInRefused', { tokenProblem: 'no JSON object' }, 'access_token=t'],
  [TOKEN, 200, 401, 'signInRefused', { tokenProblem: 'no access_token' }, { data: SECRET_PAIR }],
  [
    TOKEN,
    200,
    401,
    'signInRefused',
    { tokenProblem: 'invalid access_token' },
    { access_token: `${SECRET} 1` },
  ],
  [SIGN_IN, 400, 400, 'signInFailed', {}, QUOTE],
  [SIGN_IN, 500, 500, 'signInFailed', {}, QUOTE],
  [SIGN_IN, 204, 502, 'signInFailed', { tokenProblem: 'no JSON object' }, undefined],
  [SIGN_IN, 307, 502, 'signInFailed', {}, QUOTE],
  [SIGN_IN, 200, 502, 'signInFailed', { tokenProblem: 'no refresh_token' }, { access_token: SECRET }],
  [SIGN_IN, 200, 502, 'tokensTooLarge', {}, { ...SECRET_PAIR, refresh_token: SECRET.repeat(1000) }],
])(
  '%s with %i makes a sign-in %i %s %j, which gives nothing away and keeps the former session',
  async (call, given, status, reason, noted, body) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const headers = { location: `http://${SECRET}.test`, 'www-authenticate': `Basic realm="${SECRET}"` };
    world.upstream
      .on(TOKEN, reply(200, { access_token: `${SECRET}-identity` }))
      .on(call, () => new Response(text, { status: given, headers }));
    const response = await signIn(world, SECRET_GRANT, { cookie: SIGNED_IN });
    expect(JSON.stringify([...response.headers])).not.toMatch(/secret|location|www-authenticate"/);
    expect(await response.clone().text()).not.toMatch(/secret|127\.0\.0\.1/);
    await expectRefused(response, status, reason);
    expect(world.upstream.calls).toEqual(call === TOKEN ? [TOKEN] : [TOKEN, SIGN_IN]);
    // Only what is not the user's fault is a warning.
    const level = status >= 500 || reason === 'clientRefused' || noted.tokenProblem ? 'warn' : 'info';
    const { oauthError, tokenProblem, ...line } = world.lines.at(-1) ?? {};
    expect(line).toMatchObject({ status, reason, level });
    expect<object>({ oauthError, tokenProblem }).toEqual(noted);
    expect(JSON.stringify(world.lines)).not.toContain(SECRET);
    world.upstream.on(ME, accept('access-2')).on(REFRESH, reply(200, pair(2)));
    expect((await checkSession(world, REFRESH_ONLY)).status).toBe(200);
  },
);
