/** The contract of the sandbox's OAuth server, used as a browser and a gateway use it. */

import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import type { Sandbox } from '../../../src/demo/sandbox/sandbox.ts';
import {
  type AuthorizationRequest,
  type Landing,
  requestAuthorization,
  submitForm,
} from '../../../src/demo/tour/sign-in-through-form.ts';
import { SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';

let sandbox: Sandbox;
let client: AuthorizationRequest;
beforeAll(async () => {
  sandbox = await startTestSandbox();
  client = { ...SANDBOX_CLIENT, identityProviderUrl: sandbox.identityProviderUrl };
});
afterAll(() => sandbox.stop());

/** Where the browser is: back at the client, perhaps with an error, or still at a page of the identity provider. */
function end(landing: Landing): string {
  if (landing.at === 'page') return `a page with ${landing.status}`;
  return landing.redirect.searchParams.get('error') ?? 'the client';
}

describe('the sandbox’s identity provider', () => {
  it.each([
    [{ code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ redirect_uri: 'http://localhost:5173/other' }, 'a page with 400'],
  ])('refuses a request with %j: %s', async (parameters, expected) => {
    expect(end((await requestAuthorization({ ...client, parameters })).landing)).toBe(expected);
  });

  it.each([
    ['name', { name: '  ' }],
    ['password', { name: '"><script>alert(1)</script>', password: '' }],
  ])('asks for a %s, escapes what was entered, and then continues with consent', async (field, entered) => {
    const parameters = { prompt: 'consent' };
    const { jar, landing } = await requestAuthorization({ ...client, parameters });
    const again = await submitForm(jar, landing, entered);
    if (again.at === 'client') expect.unreachable();
    expect(again.status).toBe(422);
    expect(again.html).toContain(`<p id="problem" role="alert">Enter a ${field}.`);
    expect(again.html).toMatch(new RegExp(`<input id="${field}" [^>]*aria-describedby="problem">`));
    expect(again.html).not.toContain('<script');
    expect(again.html).toContain(`value="${Bun.escapeHTML(entered.name.trim())}"`);
    expect(end(await submitForm(jar, again, { name: 'Amina' }))).toBe('the client');
  });
});
