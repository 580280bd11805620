import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { createHash } from 'node:crypto';
import { createGatewayClient } from '../../../src/client/gateway-client.ts';
import { CookieJar } from '../../../src/demo/tour/cookie-jar.ts';
import { navigate, submitForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { SANDBOX_CLIENT } from '../../support/sandbox-account.ts';
import { type SandboxGateway, startSandboxGateway } from '../../support/sandbox-gateway.ts';
import { clientIn, fetchOf, openPage, PROVIDER, recorded, rejection } from './page.ts';

let gateway: SandboxGateway;
beforeAll(async () => {
  gateway = await startSandboxGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

function provider() {
  const issuer = gateway.sandbox.identityProviderUrl;
  return {
    issuer,
    authorizationEndpoint: `${issuer}/oauth/authorize`,
    clientId: SANDBOX_CLIENT.clientId,
    redirectUri: gateway.redirectUri,
  };
}

/** Goes through the login form, and comes back with the address that the browser would open. */
async function throughForm(address: URL, name: string): Promise<URL> {
  const jar = new CookieJar();
  const end = await submitForm(jar, await navigate(jar, address), { name, password: 'any' });
  if (end.at === 'page') throw new Error(`stopped at ${end.url}`);
  return end.redirect;
}

describe('the beginning of a sign-in', () => {
  it('asks for a code with PKCE, and keeps the query of the endpoint', async () => {
    const client = clientIn(openPage(), gateway);
    const address = await client.beginSignIn({
      ...PROVIDER,
      authorizationEndpoint: `${PROVIDER.authorizationEndpoint}?tenant=a%26b&scope=all`,
    });
    expect(`${address.origin}${address.pathname}`).toBe(PROVIDER.authorizationEndpoint);
    expect(address.searchParams.getAll('scope')).toEqual(['openid profile']);
    const { state, code_challenge, ...parameters } = Object.fromEntries(address.searchParams);
    expect(parameters).toEqual({
      tenant: 'a&b',
      response_type: 'code',
      client_id: PROVIDER.clientId,
      redirect_uri: PROVIDER.redirectUri,
      scope: 'openid profile',
      code_challenge_method: 'S256',
    });
    // 32 bytes each, in base64url.
    expect(state).toMatch(/^[\w-]{43}$/);
    expect(code_challenge).toMatch(/^[\w-]{43}$/);
  });

  it.each([
    ['scope', 'scope', 'openid music'],
    ['prompt', 'prompt', 'select_account'],
    ['acr_values', 'acrValues', 'mfa pin'],
    ['max_age', 'maxAgeSeconds', 0],
    ['max_age', 'maxAgeSeconds', 300],
  ] as const)('asks for the %s that it is given as %s: %p', async (name, option, value) => {
    const address = await clientIn(openPage(), gateway).beginSignIn({ ...PROVIDER, [option]: value });
    expect(address.searchParams.getAll(name)).toEqual([`${value}`]);
  });

  it('uses no state and no challenge twice', async () => {
    const client = clientIn(openPage(), gateway);
    const [first, second] = [await client.beginSignIn(PROVIDER), await client.beginSignIn(PROVIDER)];
    for (const name of ['state', 'code_challenge']) {
      expect(first.searchParams.get(name)).not.toBe(second.searchParams.get(name));
    }
  });

  it('fails outside of a page, as in a worker, unless storage and address are given', async () => {
    const client = createGatewayClient({ baseUrl: gateway.url });
    for (const attempt of [client.beginSignIn(PROVIDER), client.completeSignIn()]) {
      expect(await rejection(attempt)).toBeInstanceOf(TypeError);
    }
  });
});

describe('a sign-in at a real identity provider', () => {
  it('posts the code and the verifier of the challenge once, and leaves no secret behind', async () => {
    const page = openPage();
    const { fetch, sent } = recorded(fetchOf(page));
    const client = clientIn(page, gateway, { fetch });
    const address = await client.beginSignIn(provider());
    expect(sent).toEqual([]);
    const response = await throughForm(address, 'Bea');
    expect(response.searchParams.get('iss')).toBe(gateway.sandbox.identityProviderUrl);
    // By another client of the same tab, as after a navigation.
    expect(await clientIn(page, gateway, { fetch }).completeSignIn(response.href)).toBe(true);
    expect(sent.map(({ url, init }) => [init.method, url])).toEqual([
      ['POST', `${gateway.url}/api/auth/idp`],
    ]);
    const { code, code_verifier: verifier, ...rest } = JSON.parse(String(sent[0]?.init.body));
    expect([code, rest]).toEqual([response.searchParams.get('code'), {}]);
    expect(verifier).toMatch(/^[\w.~-]{43,128}$/);
    const hash = createHash('sha256').update(verifier).digest('base64url');
    expect(address.searchParams.get('code_challenge')).toBe(hash);

    expect(await client.session()).toMatchObject({ authenticated: true, profile: { name: 'Bea' } });
    await client.creations();
    await client.signOut();
    expect(page.sessionStorage.length + page.localStorage.length).toBe(0);
    expect(page.document.cookie).toBe('');
    for (const { url } of sent) {
      expect(new URL(url).search).toBe('');
      for (const secret of [code, verifier]) expect(url).not.toContain(secret);
    }
    for (const { init } of sent.slice(1)) expect(new Headers(init.headers).has('authorization')).toBe(false);
  });

  it('is denied when the identity provider sends an error', async () => {
    const page = openPage();
    const { fetch, sent } = recorded(fetchOf(page));
    const client = clientIn(page, gateway, { fetch });
    const address = await client.beginSignIn(provider());
    // Without a session there, the response must be an error.
    address.searchParams.set('prompt', 'none');
    const landing = await navigate(new CookieJar(), address);
    const response = landing.at === 'client' ? landing.redirect.href : '';
    expect(await rejection(client.completeSignIn(response))).toMatchObject({
      name: 'SignInError',
      code: 'denied',
      message: expect.stringContaining('login_required'),
    });
    expect(sent).toEqual([]);
    expect(page.sessionStorage.length).toBe(0);
  });
});
