/** Signs in as a browser does: follows redirects, stores cookies, and submits the login form. */

import { createHash, randomBytes } from 'node:crypto';
import { CookieJar } from './cookie-jar.ts';

export interface AuthorizationRequest {
  identityProviderUrl: string;
  clientId: string;
  redirectUri: string;
  jar?: CookieJar;
  /** Overrides parameters of the authorization request; `undefined` removes one. */
  parameters?: Readonly<Record<string, string | undefined>>;
}

/** The end of the redirects: the client, or a page of the identity provider. */
export type Landing =
  | { at: 'client'; redirect: URL }
  | { at: 'page'; url: URL; status: number; headers: Headers; html: string };

/** Sends an authorization request with a new code verifier, and follows the redirects. */
export async function requestAuthorization(request: AuthorizationRequest) {
  const { identityProviderUrl, clientId, redirectUri, jar = new CookieJar(), parameters = {} } = request;
  const codeVerifier = randomBytes(32).toString('base64url');
  const state = randomBytes(16).toString('base64url');
  const query = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'openid profile',
    state,
    code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...parameters,
  };
  const url = new URL(`${identityProviderUrl}/oauth/authorize`);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  return { codeVerifier, state, jar, landing: await navigate(jar, url) };
}

/** Submits the page's form. The given fields replace the values that the form has. */
export async function submitForm(
  jar: CookieJar,
  landing: Landing,
  fields: Readonly<Record<string, string>>,
): Promise<Landing> {
  if (landing.at === 'client') throw new Error(`There is no form, but a redirect to ${landing.redirect}`);
  let action: string | null = null;
  const form = new URLSearchParams();
  await new HTMLRewriter()
    .on('form[method=post]', {
      element: (element) => {
        action = element.getAttribute('action');
      },
    })
    .on('form input[name]', {
      element: (element) => form.set(element.getAttribute('name') ?? '', element.getAttribute('value') ?? ''),
    })
    .transform(new Response(landing.html))
    .text();
  if (action === null) throw new Error(`There is no form on this page (${landing.status}):\n${landing.html}`);
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return navigate(jar, new URL(action, landing.url), { method: 'POST', body: form });
}

/** Signs in completely, and returns the authorization code with its verifier. */
export async function signInThroughForm({
  name = 'demo',
  ...request
}: AuthorizationRequest & { name?: string }): Promise<{ code: string; codeVerifier: string }> {
  const { codeVerifier, jar, landing } = await requestAuthorization(request);
  const end = landing.at === 'page' ? await submitForm(jar, landing, { name }) : landing;
  if (end.at === 'page') throw new Error(`The sign-in stopped at a page (${end.status}):\n${end.html}`);
  const code = end.redirect.searchParams.get('code');
  if (code === null) throw new Error(`No code came back: ${end.redirect}`);
  return { code, codeVerifier };
}

/** Follows redirects until one leaves the origin of `start`. */
export async function navigate(jar: CookieJar, start: URL, init?: RequestInit): Promise<Landing> {
  let url = start;
  let response = await jar.fetch(url, init);
  for (
    let location = response.headers.get('location');
    location;
    location = response.headers.get('location')
  ) {
    await response.body?.cancel();
    url = new URL(location, url);
    if (url.origin !== start.origin) return { at: 'client', redirect: url };
    response = await jar.fetch(url);
  }
  const { status, headers } = response;
  return { at: 'page', url, status, headers, html: await response.text() };
}
