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
function formSent({ upstream }: World, call = TOKEN) {
  return Object.fromEntries(new URLSearchParams(upstream.last(call).body));
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

  it('sends what it got and its settings unchanged, to IDP_URL and in UPSTREAM_SIGN_IN_FIELD', async () => {
    const code = ' 4/0A+b&c=d%20é"\u{1f3b5}'.padEnd(4096, 'c');
    const grant = { code, code_verifier: '~._-+ '.padEnd(4096, 'v') };
    const token = '{"a":1}|100%\\u002b';
    const redirectUri = 'https://studio.test/callback?next=%2Fmusic&x=1';
    await using provider = startWorld();
    provider.upstream.on('POST /tenant/oauth/token', reply(200, { access_token: token }));
    await using other = startWorld({
      IDP_URL: `${provider.upstream.identityProviderUrl}/tenant`,
      IDP_CLIENT_ID: 'a client & more',
      IDP_REDIRECT_URI: redirectUri,
      UPSTREAM_SIGN_IN_FIELD: 'identity_token',
    });
    other.upstream.on(SIGN_IN, reply(200, pair(1)));
    expect((await signIn(other, grant)).status).toBe(200);
    expect(formSent(provider, 'POST /tenant/oauth/token')).toEqual({
      grant_type: 'authorization_code',
      ...grant,
      client_id: 'a client & more',
      redirect_uri: redirectUri,
    });
    expect(other.upstream.calls).toEqual([SIGN_IN]);
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

/** A response with headers that must not be relayed. */
function respond(status: number, body: string | null): () => Response {
  const headers = { location: `http://${SECRET}.test`, 'www-authenticate': `Basic realm="${SECRET}"` };
  return () => new Response(body, { status, headers });
}

/** Signs in, and asserts a refusal that gives nothing away, to the client or in the log, and keeps the old session. */
async function expectFailure(sent: string[], status: number, reason: MessageKey, level: string) {
  const response = await signIn(world, SECRET_GRANT, { cookie: SIGNED_IN });
  expect(JSON.stringify([...response.headers])).not.toMatch(/secret|location|www-authenticate"/);
  expect(await response.clone().text()).not.toMatch(/secret|127\.0\.0\.1/);
  await expectRefused(response, status, reason);
  expect(JSON.stringify(world.lines)).not.toContain(SECRET);
  const line = world.lines.at(-1);
  expect(line).toMatchObject({ status, reason, level });
  expect(world.upstream.calls).toEqual(sent);
  world.upstream.on(ME, accept('access-2')).on(REFRESH, reply(200, pair(2)));
  expect((await checkSession(world, REFRESH_ONLY)).status).toBe(200);
  return line;
}

// When a server is away or late: relay/every-route.test.ts. What is a pair: unit/token-pair.test.ts.
describe('POST /api/auth/idp when the identity provider refuses', () => {
  it.each<[given: number, body: unknown, reason: MessageKey, status: number, oauthError: string | undefined]>(
    [
      [400, { ...QUOTE, error: 'invalid_grant' }, 'signInRefused', 400, 'invalid_grant'],
      [403, { error: 'unauthorized_client' }, 'signInRefused', 403, 'unauthorized_client'],
      [429, { error: SECRET }, 'signInRefused', 429, 'other'],
      [401, 'invalid_client', 'signInRefused', 401, undefined],
      [307, { access_token: 'identity-1' }, 'signInRefused', 401, undefined],
      [500, QUOTE, 'identityProviderFailed', 500, undefined],
      [599, QUOTE, 'identityProviderFailed', 599, undefined],
      [500, { error: 'invalid_client' }, 'clientRefused', 500, 'invalid_client'],
      [200, { error: 'invalid_client' }, 'clientRefused', 401, 'invalid_client'],
    ],
  )('with %i and the body %j, reports %s with %i', async (given, body, reason, status, oauthError) => {
    world.upstream.on(TOKEN, respond(given, JSON.stringify(body)));
    // Only what is not the user's fault is a warning.
    const line = await expectFailure([TOKEN], status, reason, reason === 'signInRefused' ? 'info' : 'warn');
    expect(line?.['tokenProblem']).toBe(given === 200 ? 'no access_token' : undefined);
    expect(line?.['oauthError']).toBe(oauthError);
  });

  it.each<[body: string, TokenProblem]>([
    ['access_token=t', 'no JSON object'],
    [`{"id_token":"${SECRET}","data":{"access_token":"t"}}`, 'no access_token'],
    [`{"access_token":"${SECRET} 1"}`, 'invalid access_token'],
  ])('responds 401 when its success has no identity token: %s', async (body, tokenProblem) => {
    world.upstream.on(TOKEN, respond(200, body));
    expect(await expectFailure([TOKEN], 401, 'signInRefused', 'warn')).toMatchObject({ tokenProblem });
  });
});

describe('POST /api/auth/idp when the upstream', () => {
  beforeEach(() => void world.upstream.on(TOKEN, reply(200, { access_token: `${SECRET}-identity` })));

  it.each([
    [400, 400],
    [500, 500],
    [204, 502],
    [307, 502],
  ])('responds %i, responds %i, keeps an earlier session and does not try again', async (given, status) => {
    const body = given === 204 ? null : JSON.stringify({ ...QUOTE, error: { message: SECRET } });
    world.upstream.on(SIGN_IN, respond(given, body));
    await expectFailure([TOKEN, SIGN_IN], status, 'signInFailed', status >= 500 ? 'warn' : 'info');
  });

  it.each<[what: string, pair: object, reason: MessageKey, TokenProblem | undefined]>([
    ['half', { access_token: SECRET }, 'signInFailed', 'no refresh_token'],
    [
      'too large for a cookie',
      { ...SECRET_PAIR, refresh_token: SECRET.repeat(1000) },
      'tokensTooLarge',
      undefined,
    ],
  ])(
    'gives a pair that is %s, gives no token away and keeps an earlier session',
    async (_, pair, reason, tokenProblem) => {
      world.upstream.on(SIGN_IN, reply(200, pair));
      const line = await expectFailure([TOKEN, SIGN_IN], 502, reason, 'warn');
      expect(line?.['tokenProblem']).toBe(tokenProblem);
    },
  );
});
