/** The sandbox's identity provider, used as a browser and a gateway use it. */

import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { createHash } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { startIdentityProvider } from '../../src/demo/sandbox/identity-provider/identity-provider.ts';
import type { Sandbox } from '../../src/demo/sandbox/sandbox.ts';
import type { CookieJar } from '../../src/demo/tour/cookie-jar.ts';
import {
  type Landing,
  requestAuthorization,
  signInThroughForm,
  submitForm,
} from '../../src/demo/tour/sign-in-through-form.ts';
import { exchangeCode, readJson, SANDBOX_CLIENT, startTestSandbox } from '../support/sandbox-account.ts';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.stop());

function authorize(parameters: Record<string, string | undefined> = {}, jar?: CookieJar) {
  const { identityProviderUrl } = sandbox;
  return requestAuthorization({
    ...SANDBOX_CLIENT,
    identityProviderUrl,
    parameters,
    ...(jar && { jar }),
  });
}

function errorAt(landing: Landing): string | null {
  return landing.at === 'client' ? landing.redirect.searchParams.get('error') : `a page: ${landing.status}`;
}

describe('identity provider, /oauth/authorize', () => {
  it('returns to the client with a code and the state once the form is sent', async () => {
    const { jar, landing, state } = await authorize();
    const end = await submitForm(jar, landing, { name: 'Amina' });

    if (end.at !== 'client') throw new Error(end.html);
    expect(end.redirect.href).toStartWith(`${SANDBOX_CLIENT.redirectUri}?`);
    expect(end.redirect.searchParams.get('code')).toMatch(/^[\w-]{20,}$/);
    expect(end.redirect.searchParams.get('state')).toBe(state);
  });

  it('asks a browser that is signed in for nothing', async () => {
    const { jar, landing } = await authorize();
    await submitForm(jar, landing, {});

    const again = await authorize({}, jar);

    expect(again.landing).toMatchObject({ at: 'client' });
    expect(errorAt(again.landing)).toBeNull();
  });

  it('lets another person sign in when the client asks with prompt=login', async () => {
    const { jar, landing } = await authorize();
    await submitForm(jar, landing, { name: 'Amina' });

    const login = await authorize({ prompt: 'login' }, jar);
    const switching = await submitForm(jar, login.landing, { name: 'Baraka' });

    // A browser sends this page's form by its script: it ends the first person's session.
    expect(errorAt(await submitForm(jar, switching, {}))).toBeNull();
  });

  it('grants without a question even when the client asks with prompt=consent', async () => {
    const { jar, landing } = await authorize({ prompt: 'consent' });
    expect(errorAt(await submitForm(jar, landing, {}))).toBeNull();
  });

  it('refuses a request without a code challenge', async () => {
    const { landing } = await authorize({ code_challenge: undefined, code_challenge_method: undefined });
    expect(errorAt(landing)).toBe('invalid_request');
  });

  it('refuses the plain challenge method', async () => {
    const { landing } = await authorize({ code_challenge_method: 'plain' });
    expect(errorAt(landing)).toBe('invalid_request');
  });

  it('shows a page, and redirects nowhere, for a redirect URI that is not registered', async () => {
    const { landing } = await authorize({ redirect_uri: 'http://localhost:5173/other' });
    expect(landing).toMatchObject({ at: 'page', status: 400 });
  });
});

describe('identity provider, login form', () => {
  it('comes again with a clear message for an empty name, and then goes on', async () => {
    const { jar, landing } = await authorize();

    const again = await submitForm(jar, landing, { name: '  ' });

    if (again.at !== 'page') throw new Error('The form was accepted');
    expect(again.status).toBe(422);
    expect(again.html).toContain('<p id="problem" role="alert">Enter a name.</p>');
    expect(again.html).toMatch(/<input id="name" [^>]*aria-invalid="true" aria-describedby="problem">/);
    expect(await submitForm(jar, again, { name: 'Amina' })).toMatchObject({ at: 'client' });
  });

  it('asks for a password, and keeps and escapes the name', async () => {
    const { jar, landing } = await authorize();
    const again = await submitForm(jar, landing, { name: '"><script>alert(1)</script>', password: '' });

    if (again.at !== 'page') throw new Error('The form was accepted');
    expect(again.html).toContain('Enter a password.');
    expect(again.html).toMatch(/<input id="password" [^>]*aria-invalid="true" aria-describedby="problem">/);
    expect(again.html).toContain('value="&quot;&gt;&lt;script&gt;');
    expect(again.html).not.toContain('<script');
  });

  it('allows its own style by hash, no script, and the form only to itself and the client', async () => {
    const { landing } = await authorize();

    if (landing.at !== 'page') throw new Error('There is no form');
    const [, style = ''] = /<style>(.*)<\/style>/s.exec(landing.html) ?? [];
    expect(landing.headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; ` +
        "form-action 'self' http://localhost:5173; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(landing.headers.get('cache-control')).toBe('no-store');
  });

  it('says so when the sign-in is not known', async () => {
    const response = await fetch(`${sandbox.identityProviderUrl}/sign-in/unknown`);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('It has expired, or was begun in another browser.');
  });
});

describe('identity provider, /oauth/token and /oauth/userinfo', () => {
  it('exchanges the code once, for a token that tells the name', async () => {
    const { identityProviderUrl } = sandbox;
    const { code, codeVerifier } = await signInThroughForm({
      ...SANDBOX_CLIENT,
      identityProviderUrl,
      name: 'Zoë',
    });

    const response = await exchangeCode(sandbox, code, codeVerifier);
    const token = await readJson(response, Type.Object({ access_token: Type.String() }));
    expect(token).toMatchObject({ token_type: 'Bearer' });
    const userinfo = await fetch(`${identityProviderUrl}/oauth/userinfo`, {
      headers: { Authorization: `Bearer ${token.access_token}` },
    });
    expect(await userinfo.json()).toMatchObject({ name: 'Zoë', preferred_username: 'Zoë' });

    const second = await exchangeCode(sandbox, code, codeVerifier);
    expect(second.status).toBe(400);
  });

  it('refuses a wrong code verifier', async () => {
    const { identityProviderUrl } = sandbox;
    const { code } = await signInThroughForm({ ...SANDBOX_CLIENT, identityProviderUrl });
    const response = await exchangeCode(sandbox, code, 'x'.repeat(43));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: 'invalid_grant' });
  });
});

describe('startIdentityProvider()', () => {
  it('rejects with EADDRINUSE when the port is taken', async () => {
    const { clientId, redirectUri } = SANDBOX_CLIENT;
    const port = Number(new URL(sandbox.identityProviderUrl).port);
    const start = startIdentityProvider({
      port,
      hostname: '127.0.0.1',
      clientId,
      redirectUris: [redirectUri],
    });
    expect(start).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});
