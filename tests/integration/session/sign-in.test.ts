import { beforeEach, describe, expect, it } from 'bun:test';
import { signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import type { MessageKey } from '../../../src/gateway/http/messages.ts';
import { SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';
import {
  expectRefused,
  GRANT,
  pair,
  reply,
  SIGN_IN,
  scriptSignIn,
  signIn,
  TOKEN,
} from '../../support/session-calls.ts';
import { sharedWorld } from '../../support/shared-world.ts';
import { SIGNED_IN, startWorld } from '../../support/world.ts';

const BOTH_STEPS = [TOKEN, SIGN_IN];

const world = sharedWorld();
beforeEach(() => scriptSignIn(world));

describe('POST /api/auth/idp', () => {
  it('sets both session cookies, with the tokens nowhere else in the response', async () => {
    scriptSignIn(world, { ...pair(1), expires_in: 1200 });
    const response = await signIn(world, GRANT, { cookie: `${SIGNED_IN}; ${SIGNED_IN}` });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toStartWith('application/json');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.text()).toBe('{"ok":true}');
    expect(response.headers.getSetCookie()).toEqual([
      'svc_music_access=access-1; Path=/; Max-Age=1200; HttpOnly; SameSite=Lax',
      'svc_music_refresh=refresh-1; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
    ]);
    response.headers.delete('set-cookie');
    expect(JSON.stringify([...response.headers])).not.toMatch(/access-1|refresh-1|identity-1/);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
    expect(world.log).toEqual([]);
  });

  it('exchanges the code as a form and the identity token as JSON, and sends nothing else of the browser', async () => {
    const foreign = 'from-the-browser';
    const extra = {
      access_token: foreign,
      client_id: foreign,
      redirect_uri: foreign,
      grant_type: 'password',
    };
    const headers = { authorization: `Bearer ${foreign}` };
    const response = await signIn(world, { ...GRANT, ...extra }, { cookie: SIGNED_IN, headers });
    expect(response.status).toBe(200);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
    const exchange = world.upstream.last(TOKEN);
    expect(exchange.body).toBe(
      `grant_type=authorization_code&code=code-1&code_verifier=${GRANT.code_verifier}&client_id=studio` +
        '&redirect_uri=http%3A%2F%2Fstudio.test%2Fcallback',
    );
    expect(exchange.headers.get('content-type')).toBe('application/x-www-form-urlencoded');
    const signedIn = world.upstream.last(SIGN_IN);
    expect(signedIn.body).toBe('{"access_token":"identity-1"}');
    expect(signedIn.headers.get('content-type')).toBe('application/json');
    for (const received of [exchange, signedIn]) {
      expect(received.headers.get('accept')).toBe('application/json');
      for (const name of ['cookie', 'origin', 'authorization']) expect(received.headers.get(name)).toBeNull();
    }
  });

  it('passes on code, verifier, client id and redirect URI unchanged, whatever characters they have', async () => {
    const code = ' 4/0A+b&c=d%20é"\u{1f3b5}';
    const verifier = `${GRANT.code_verifier}~._-+ `;
    const redirectUri = 'https://studio.test/callback?next=%2Fmusic&x=1';
    await using other = startWorld({ IDP_CLIENT_ID: 'a client & more', IDP_REDIRECT_URI: redirectUri });
    scriptSignIn(other);
    expect((await signIn(other, { code, code_verifier: verifier })).status).toBe(200);
    expect([...new URLSearchParams(other.upstream.last(TOKEN).body)]).toEqual([
      ['grant_type', 'authorization_code'],
      ['code', code],
      ['code_verifier', verifier],
      ['client_id', 'a client & more'],
      ['redirect_uri', redirectUri],
    ]);
  });

  it('sends the code to IDP_URL, and the identity token to UPSTREAM_URL in UPSTREAM_SIGN_IN_FIELD', async () => {
    const token = '{"a":1}|100%\\u002b';
    await using provider = startWorld();
    const tokens = { access_token: token, error: 'invalid_client' };
    provider.upstream.on('POST /tenant/oauth/token', reply(200, tokens));
    const IDP_URL = `${provider.upstream.identityProviderUrl}/tenant`;
    await using other = startWorld({ IDP_URL, UPSTREAM_SIGN_IN_FIELD: 'identity_token' });
    other.upstream.on(SIGN_IN, reply(200, pair(1)));
    expect((await signIn(other)).status).toBe(200);
    expect(provider.upstream.calls).toEqual(['POST /tenant/oauth/token']);
    expect(other.upstream.calls).toEqual([SIGN_IN]);
    expect(JSON.parse(other.upstream.last(SIGN_IN).body)).toEqual({ identity_token: token });
    // Errors of the provider are logged only when it has refused the sign-in.
    expect(other.lines.at(-1)).not.toHaveProperty('oauthError');
  });
});

describe('POST /api/auth/idp with bad input', () => {
  const NO_TEXTS = [undefined, null, '', 12345, 10 ** 50, true, Array(43).fill('x'), { length: 43 }];

  it.each<[field: string, wrong: unknown[], key: MessageKey]>([
    ['code', [...NO_TEXTS, 'c'.repeat(4097)], 'codeInvalid'],
    ['code_verifier', [...NO_TEXTS, 'v'.repeat(42), 'v'.repeat(4097)], 'codeVerifierInvalid'],
  ])('refuses a %s that is missing, is no text, or is too short or too long', async (field, wrong, key) => {
    for (const value of wrong) {
      await expectRefused(await signIn(world, { ...GRANT, [field]: value }), 400, key);
    }
    expect(world.upstream.calls).toEqual([]);
    expect(world.log).toEqual([]);
  });

  it.each([
    [1, 43],
    [4096, 4096],
  ])('accepts a code of %i and a verifier of %i characters', async (codeLength, verifierLength) => {
    const grant = { code: 'c'.repeat(codeLength), code_verifier: 'v'.repeat(verifierLength) };
    expect((await signIn(world, grant)).status).toBe(200);
    const form = new URLSearchParams(world.upstream.last(TOKEN).body);
    expect([form.get('code'), form.get('code_verifier')]).toEqual([grant.code, grant.code_verifier]);
  });

  it('names the field and its rule, and does not repeat what was sent', async () => {
    const text = await (
      await signIn(world, { code: 'secret-code', code_verifier: 'secret-verifier' })
    ).text();
    expect(text).toMatch(/code_verifier.*43/);
    expect(text).not.toContain('secret');
  });

  it.each<[what: string, body: string, key: MessageKey]>([
    ['whose fields are in a __proto__ key', `{"__proto__":${JSON.stringify(GRANT)}}`, 'codeInvalid'],
    ['without a body', '', 'bodyNotAnObject'],
  ])('refuses a request %s', async (_, body, key) => {
    const headers: Record<string, string> = body ? { 'content-type': 'application/json' } : {};
    await expectRefused(await world.request('/api/auth/idp', { method: 'POST', headers, body }), 400, key);
    expect(world.upstream.calls).toEqual([]);
  });
});

describe('POST /api/auth/idp with a redirect URI for each origin', () => {
  const STUDIO = 'http://studio.test';
  const PLAYER = 'http://player.test:8080';
  /** May play public tracks, but nobody signs in there. */
  const SHOWCASE = 'http://showcase.test';
  const [OF_STUDIO, OF_PLAYER] = [`${STUDIO}/callback`, `${PLAYER}/?from=login`];
  const ALLOWED_ORIGINS = [STUDIO, PLAYER, SHOWCASE].join(',');
  const LIST = { ALLOWED_ORIGINS, IDP_REDIRECT_URI: `${OF_STUDIO}, ${OF_PLAYER}` };

  it('exchanges a code for the page that has requested it, and for no other', async () => {
    await using stack = new AsyncDisposableStack();
    const sandbox = await startTestSandbox({ redirectUris: [OF_STUDIO, OF_PLAYER] });
    stack.defer(() => sandbox.stop());
    const { identityProviderUrl, upstream } = sandbox;
    const { clientId } = SANDBOX_CLIENT;
    const addresses = { UPSTREAM_URL: upstream.url, IDP_URL: identityProviderUrl, IDP_CLIENT_ID: clientId };
    const listed = stack.use(startWorld({ ...LIST, ...addresses }));
    for (const [redirectUri, origin, status] of [
      [OF_STUDIO, STUDIO, 200],
      [OF_PLAYER, PLAYER, 200],
      [OF_STUDIO, PLAYER, 400],
    ] as const) {
      const { code, codeVerifier } = await signInThroughForm({ identityProviderUrl, clientId, redirectUri });
      const response = await signIn(listed, { code, code_verifier: codeVerifier }, { origin });
      expect([redirectUri, origin, response.status]).toEqual([redirectUri, origin, status]);
    }
    expect(upstream.counts().signIns).toBe(2);
  });

  it('refuses an allowed origin that has none with 403, and sends nothing to the identity provider', async () => {
    await using listed = startWorld(LIST);
    for (const grant of [undefined, {}]) {
      const response = await signIn(listed, grant, { origin: SHOWCASE });
      expect(response.headers.get('access-control-allow-origin')).toBe(SHOWCASE);
      await expectRefused(response, 403, 'signInNotSetUp');
    }
    expect(listed.upstream.calls).toEqual([]);
    expect(listed.lines.at(-1)).toMatchObject({ status: 403, reason: 'signInNotSetUp' });
  });

  it('sends a single one for every allowed origin, of whatever origin it is itself', async () => {
    const redirectUri = 'https://elsewhere.test/callback';
    await using single = startWorld({ ALLOWED_ORIGINS, IDP_REDIRECT_URI: redirectUri });
    scriptSignIn(single);
    for (const origin of [STUDIO, SHOWCASE]) {
      expect((await signIn(single, undefined, { origin })).status).toBe(200);
      const form = new URLSearchParams(single.upstream.last(TOKEN).body);
      expect(form.get('redirect_uri')).toBe(redirectUri);
    }
  });
});
