/** The contract of the sandbox's OAuth server, used as a browser and a gateway use it. */

import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { createHash } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import { startIdentityProvider } from '../../../src/demo/sandbox/identity-provider/identity-provider.ts';
import type { Sandbox } from '../../../src/demo/sandbox/sandbox.ts';
import type { CookieJar } from '../../../src/demo/tour/cookie-jar.ts';
import {
  type Landing,
  requestAuthorization,
  signInThroughForm,
  submitForm,
} from '../../../src/demo/tour/sign-in-through-form.ts';
import { exchangeCode, readJson, SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';

let sandbox: Sandbox;
let client: typeof SANDBOX_CLIENT & { identityProviderUrl: string };
beforeAll(async () => {
  sandbox = await startTestSandbox();
  client = { ...SANDBOX_CLIENT, identityProviderUrl: sandbox.identityProviderUrl };
});
afterAll(() => sandbox.stop());

function authorize(parameters: Record<string, string | undefined> = {}, jar?: CookieJar) {
  return requestAuthorization({ ...client, parameters, ...(jar && { jar }) });
}

function errorAt(landing: Landing): string | null {
  return landing.at === 'client' ? landing.redirect.searchParams.get('error') : `a page: ${landing.status}`;
}

/** Asserts that the browser is still at the identity provider. */
function pageAt(landing: Landing) {
  if (landing.at !== 'page') throw new Error(`The browser was sent on to ${landing.redirect}`);
  return landing;
}

describe('the sandbox’s /oauth/authorize', () => {
  it('returns to the client with a code and the state once the form is sent', async () => {
    const { jar, landing, state } = await authorize();
    const end = await submitForm(jar, landing, { name: 'Amina' });
    if (end.at !== 'client') throw new Error(end.html);
    expect(end.redirect.href).toStartWith(`${SANDBOX_CLIENT.redirectUri}?`);
    expect(end.redirect.searchParams.get('code')).toMatch(/^[\w-]{20,}$/);
    expect(end.redirect.searchParams.get('state')).toBe(state);
  });

  it('asks nothing of a browser that is signed in, unless the client asks with prompt=login', async () => {
    const { jar, landing } = await authorize();
    await submitForm(jar, landing, { name: 'Amina' });
    const again = await authorize({}, jar);
    expect(again.landing).toMatchObject({ at: 'client' });
    expect(errorAt(again.landing)).toBeNull();
    const login = await authorize({ prompt: 'login' }, jar);
    const switching = await submitForm(jar, login.landing, { name: 'Baraka' });
    // A browser sends this page's form by its script: it ends the first person's session.
    expect(errorAt(await submitForm(jar, switching, {}))).toBeNull();
  });

  it('grants without a question even when the client asks with prompt=consent', async () => {
    const { jar, landing } = await authorize({ prompt: 'consent' });
    expect(errorAt(await submitForm(jar, landing, {}))).toBeNull();
  });

  it.each([
    ['no code challenge', { code_challenge: undefined, code_challenge_method: undefined }],
    ['the plain challenge method', { code_challenge_method: 'plain' }],
  ])('refuses a request with %s', async (_, parameters) => {
    expect(errorAt((await authorize(parameters)).landing)).toBe('invalid_request');
  });

  it('shows a page, and redirects nowhere, for a redirect URI that is not registered', async () => {
    const { landing } = await authorize({ redirect_uri: 'http://localhost:5173/other' });
    expect(landing).toMatchObject({ at: 'page', status: 400 });
    expect(pageAt(landing).html).toContain(`registered redirect_uris: ${SANDBOX_CLIENT.redirectUri}<`);
  });
});

describe('the sandbox’s login form', () => {
  it('asks for a name that is not blank, and then continues', async () => {
    const { jar, landing } = await authorize();
    const again = pageAt(await submitForm(jar, landing, { name: '  ' }));
    expect(again.status).toBe(422);
    expect(again.html).toContain('<p id="problem" role="alert">Enter a name.</p>');
    expect(again.html).toMatch(/<input id="name" [^>]*aria-invalid="true" aria-describedby="problem">/);
    expect(await submitForm(jar, again, { name: 'Amina' })).toMatchObject({ at: 'client' });
  });

  it('asks for a password, and keeps and escapes the name', async () => {
    const { jar, landing } = await authorize();
    const name = '"><script>alert(1)</script>';
    const { html } = pageAt(await submitForm(jar, landing, { name, password: '' }));
    expect(html).toContain('Enter a password.');
    expect(html).toMatch(/<input id="password" [^>]*aria-invalid="true" aria-describedby="problem">/);
    expect(html).toContain('value="&quot;&gt;&lt;script&gt;');
    expect(html).not.toContain('<script');
  });

  it('allows its own style by hash, no script, and the form only to itself and the client', async () => {
    const { html, headers } = pageAt((await authorize()).landing);
    const [, style = ''] = /<style>(.*)<\/style>/s.exec(html) ?? [];
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; ` +
        "form-action 'self' http://localhost:5173; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('says so when the sign-in is not known', async () => {
    const response = await fetch(`${sandbox.identityProviderUrl}/sign-in/unknown`);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('It has expired, or was begun in another browser.');
  });
});

describe('the sandbox’s /oauth/token', () => {
  it('exchanges a code once, for a token with which /oauth/userinfo returns the name', async () => {
    const { code, codeVerifier } = await signInThroughForm({ ...client, name: 'Zoë' });
    const response = await exchangeCode(sandbox, code, codeVerifier);
    const token = await readJson(response, Type.Object({ access_token: Type.String() }));
    expect(token).toMatchObject({ token_type: 'Bearer' });
    const headers = { Authorization: `Bearer ${token.access_token}` };
    const userinfo = await fetch(`${sandbox.identityProviderUrl}/oauth/userinfo`, { headers });
    expect(await userinfo.json()).toMatchObject({ name: 'Zoë', preferred_username: 'Zoë' });
    expect((await exchangeCode(sandbox, code, codeVerifier)).status).toBe(400);
  });

  it('refuses a wrong code verifier', async () => {
    const { code } = await signInThroughForm(client);
    const response = await exchangeCode(sandbox, code, 'x'.repeat(43));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: 'invalid_grant' });
  });
});

describe('startIdentityProvider()', () => {
  it('rejects with EADDRINUSE when the port is taken', async () => {
    const { clientId, redirectUri } = SANDBOX_CLIENT;
    const port = Number(new URL(sandbox.identityProviderUrl).port);
    const options = { port, hostname: '127.0.0.1', clientId, redirectUris: [redirectUri] };
    await expect(startIdentityProvider(options)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});
