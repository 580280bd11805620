import { beforeEach, describe, expect, it } from 'bun:test';
import type { MessageKey } from '../../../src/gateway/http/messages.ts';
import type { TokenProblem } from '../../../src/gateway/record/request-record.ts';
import * as calls from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { ORIGIN, REFRESH_ONLY, SIGNED_IN, startWorld, type World } from '../../support/world.ts';

const { accept, checkSession, expectRefused, GRANT, ME, pair } = calls;
const { REFRESH, reply, SIGN_IN, scriptSignIn, signIn, TOKEN } = calls;

const world = sharedWorld();
beforeEach(() => scriptSignIn(world, { ...pair(1), expires_in: 1200 }));

/** The form that the identity provider's token endpoint has received. */
function formSent({ upstream }: World) {
  return Object.fromEntries(new URLSearchParams(upstream.last(TOKEN).body));
}

describe('POST /api/auth/idp', () => {
  const SHORTEST = { code: 'c', code_verifier: 'v'.repeat(43) };
  const LONGEST = {
    code: ' 4/0A+b&c=d%20é"\u{1f3b5}'.padEnd(4096, 'c'),
    code_verifier: ' ~._-+ '.padEnd(4096, 'v'),
  };
  const ODD = {
    IDP_CLIENT_ID: 'a client & more',
    IDP_REDIRECT_URI: 'https://studio.test/callback?next=%2Fmusic&x=1',
    UPSTREAM_SIGN_IN_FIELD: 'identity_token',
  };
  const FOREIGN = { access_token: 'x', client_id: 'x', redirect_uri: 'x', grant_type: 'x' };

  it.each([
    [{}, SHORTEST, 'studio', `${ORIGIN}/callback`, 'access_token', 'identity-1'],
    [ODD, LONGEST, ODD.IDP_CLIENT_ID, ODD.IDP_REDIRECT_URI, 'identity_token', 'identity-1|100%\\u002b'],
  ])(
    'with the settings %j sends what it got and no more, sets both cookies, and shows no token elsewhere',
    async (settings, grant, client_id, redirect_uri, field, token) => {
      await using own = startWorld(settings);
      scriptSignIn(own, { ...pair(1), expires_in: 1200 });
      own.upstream.on(TOKEN, reply(200, { access_token: token }));
      const headers = { authorization: 'Bearer x' };
      const options = { cookie: `${SIGNED_IN}; ${SIGNED_IN}`, headers };
      const response = await signIn(own, { ...grant, ...FOREIGN }, options);
      expect([response.status, await response.text()]).toEqual([200, '{"ok":true}']);
      expect(response.headers.getSetCookie()).toEqual([
        'svc_music_access=access-1; Path=/; Max-Age=1200; HttpOnly; SameSite=Lax',
        'svc_music_refresh=refresh-1; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
      ]);
      response.headers.delete('set-cookie');
      expect(JSON.stringify([...response.headers])).not.toMatch(/access-1|refresh-1|identity-1/);
      expect(own.upstream.calls).toEqual([TOKEN, SIGN_IN]);
      const form = { grant_type: 'authorization_code', ...grant, client_id, redirect_uri };
      expect(formSent(own)).toEqual(form);
      expect(own.upstream.last(SIGN_IN).body).toBe(JSON.stringify({ [field]: token }));
      for (const { headers, target } of own.upstream.received) {
        const type = target.startsWith('/v1') ? 'application/json' : 'application/x-www-form-urlencoded';
        expect([headers.get('content-type'), headers.get('accept')]).toEqual([type, 'application/json']);
        for (const name of ['cookie', 'origin', 'authorization']) expect(headers.get(name)).toBeNull();
      }
      expect(own.log).toEqual([]);
    },
  );

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

/** Public tracks may be played at the showcase, but nobody signs in there when the others are listed. */
const [STUDIO, PLAYER, SHOWCASE] = ['http://a.test', 'http://b.test:8080', 'http://c.test'];
const LIST = `${STUDIO}/callback, ${PLAYER}/?from=login`;
const ELSEWHERE = 'https://elsewhere.test/callback';

it.each([
  [LIST, STUDIO, `${STUDIO}/callback`],
  [LIST, PLAYER, `${PLAYER}/?from=login`],
  [LIST, SHOWCASE, undefined],
  [ELSEWHERE, SHOWCASE, ELSEWHERE],
])('the redirect URI of %s is, for a page of %s, %s', async (IDP_REDIRECT_URI, origin, redirect_uri) => {
  const ALLOWED_ORIGINS = [STUDIO, PLAYER, SHOWCASE].join(',');
  await using listed = startWorld({ ALLOWED_ORIGINS, IDP_REDIRECT_URI });
  scriptSignIn(listed);
  const response = await signIn(listed, GRANT, { origin });
  if (redirect_uri) return expect(formSent(listed)).toMatchObject({ redirect_uri });
  await expectRefused(response, 403, 'signInNotSetUp');
  expect(listed.upstream.calls).toEqual([]);
});

/** The browser and both servers send it everywhere; no refusal may show it. */
const SECRET = 'secret';
const SECRET_GRANT = { code: `${SECRET}-code`, code_verifier: SECRET.repeat(8) };
const SECRET_PAIR = { access_token: `${SECRET}-access`, refresh_token: `${SECRET}-refresh` };
const WITH_SPACE = { access_token: `${SECRET} 1` };
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
  [TOKEN, 200, 401, 'signInRefused', { tokenProblem: 'invalid access_token' }, WITH_SPACE],
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
