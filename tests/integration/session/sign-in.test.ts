import { beforeEach, describe, expect, it } from 'bun:test';
import type { MessageKey } from '../../../src/gateway/http/messages.ts';
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
    const response = await signIn(world);
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
    const response = await signIn(other, { code, code_verifier: verifier });
    expect(response.status).toBe(200);
    const { body } = other.upstream.last(TOKEN);
    expect(body).toContain('&client_id=a+client+%26+more&');
    expect([...new URLSearchParams(body)]).toEqual([
      ['grant_type', 'authorization_code'],
      ['code', code],
      ['code_verifier', verifier],
      ['client_id', 'a client & more'],
      ['redirect_uri', redirectUri],
    ]);
  });

  it('sends the identity token byte for byte in the field of UPSTREAM_SIGN_IN_FIELD', async () => {
    const token = '{"a":1}|100%\\u002b';
    await using other = startWorld({ UPSTREAM_SIGN_IN_FIELD: 'identity_token' });
    scriptSignIn(other);
    other.upstream.on(TOKEN, reply(200, { access_token: token, error: 'invalid_client' }));
    const response = await signIn(other);
    expect(response.status).toBe(200);
    expect(JSON.parse(other.upstream.last(SIGN_IN).body)).toEqual({ identity_token: token });
    // Errors of the provider are logged only when it has refused the sign-in.
    expect(other.lines.at(-1)).not.toHaveProperty('oauthError');
  });

  it('sends the code to IDP_URL and the identity token to UPSTREAM_URL', async () => {
    await using provider = startWorld();
    provider.upstream.on(`POST /tenant/oauth/token`, reply(200, { access_token: 'identity-1' }));
    await using other = startWorld({ IDP_URL: `${provider.upstream.identityProviderUrl}/tenant` });
    other.upstream.on(SIGN_IN, reply(200, pair(1)));
    const response = await signIn(other);
    expect(response.status).toBe(200);
    expect(provider.upstream.calls).toEqual(['POST /tenant/oauth/token']);
    expect(other.upstream.calls).toEqual([SIGN_IN]);
  });

  it('sets both cookies for a browser that sends a session cookie twice', async () => {
    const response = await signIn(world, GRANT, { cookie: `${SIGNED_IN}; ${SIGNED_IN}` });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('{"ok":true}');
    expect(response.headers.getSetCookie()).toHaveLength(2);
    expect(world.upstream.calls).toEqual(BOTH_STEPS);
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

  it('accepts a code of 1 to 4096 characters and a verifier of 43 to 4096', async () => {
    for (const [codeLength, verifierLength] of [
      [1, 43],
      [1, 44],
      [1, 128],
      [4096, 4096],
    ] as const) {
      const grant = { code: 'c'.repeat(codeLength), code_verifier: 'v'.repeat(verifierLength) };
      expect((await signIn(world, grant)).status).toBe(200);
      const form = new URLSearchParams(world.upstream.last(TOKEN).body);
      expect(form.get('code')).toBe(grant.code);
      expect(form.get('code_verifier')).toBe(grant.code_verifier);
    }
  });

  it('names the field and its rule, and does not repeat what was sent', async () => {
    const response = await signIn(world, { code: 'secret-code', code_verifier: 'secret-verifier' });
    expect(response.status).toBe(400);
    const text = await response.text();
    expect(text).toMatch(/code_verifier.*43/);
    expect(text).not.toContain('secret');
  });

  it('finds no fields in a __proto__ key', async () => {
    const body = `{"__proto__":${JSON.stringify(GRANT)}}`;
    const headers = { 'content-type': 'application/json' };
    const response = await world.request('/api/auth/idp', { method: 'POST', headers, body });
    await expectRefused(response, 400, 'codeInvalid');
    expect(world.upstream.calls).toEqual([]);
  });

  it('refuses a request without a body', async () => {
    const response = await world.request('/api/auth/idp', { method: 'POST' });
    await expectRefused(response, 400, 'bodyNotAnObject');
    expect(world.upstream.calls).toEqual([]);
  });
});
