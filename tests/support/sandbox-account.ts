/** An account of the sandbox, signed in at its upstream directly, without the gateway. */

import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/demo/sandbox/sandbox.ts';
import { signInThroughForm } from '../../src/demo/tour/sign-in-through-form.ts';

export const SANDBOX_CLIENT = { clientId: 'studio', redirectUri: 'http://localhost:5173/callback' };

const TOKENS = Type.Object({
  access_token: Type.String(),
  refresh_token: Type.String(),
  expires_in: Type.Number(),
});
export type Tokens = Static<typeof TOKENS>;

/** Both servers on free ports; generation is as fast as it can be unless a pace is given. */
export async function startTestSandbox(options: Partial<SandboxOptions> = {}) {
  const { clientId, redirectUri } = SANDBOX_CLIENT;
  const usual = { clientId, redirectUris: [redirectUri], pace: Number.POSITIVE_INFINITY };
  const sandbox = await startSandbox({ ...usual, ...options });
  return { ...sandbox, [Symbol.asyncDispose]: () => sandbox.stop() };
}

/** What a gateway has to know of the sandbox. */
export function sandboxSettings({ upstream, identityProviderUrl }: Sandbox) {
  return {
    UPSTREAM_URL: upstream.url,
    IDP_URL: identityProviderUrl,
    IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
    IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
  };
}

/** Exchanges a code at the identity provider's token endpoint. */
export async function exchangeCode(sandbox: Sandbox, code: string, codeVerifier: string): Promise<Response> {
  const client = { client_id: SANDBOX_CLIENT.clientId, redirect_uri: SANDBOX_CLIENT.redirectUri };
  const grant = { grant_type: 'authorization_code', code, code_verifier: codeVerifier };
  const body = new URLSearchParams({ ...grant, ...client });
  return fetch(`${sandbox.identityProviderUrl}/oauth/token`, { method: 'POST', body });
}

/** Goes through the login form, and from its code to a token pair of the upstream. */
export async function signIn(sandbox: Sandbox, name: string): Promise<Tokens> {
  const { identityProviderUrl, upstream } = sandbox;
  const { code, codeVerifier } = await signInThroughForm({ ...SANDBOX_CLIENT, identityProviderUrl, name });
  const identity = await exchangeCode(sandbox, code, codeVerifier);
  const { access_token } = await readJson(identity, Type.Object({ access_token: Type.String() }));
  return readTokens(await postJson(`${upstream.url}/v1/auth/idp`, { access_token }));
}

export function readTokens(response: Response): Promise<Tokens> {
  return readJson(response, TOKENS);
}

/** The JSON of a successful response, which may have further properties. */
export async function readJson<Schema extends TSchema>(response: Response, schema: Schema) {
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${await response.text()}`);
  const body: unknown = await response.json();
  if (!Value.Check(schema, body)) throw new Error(`${response.url}: unexpected ${JSON.stringify(body)}`);
  return body;
}

/** Three seconds of music; costs 3 credits. */
export const ORDER = {
  model: 'sandbox-music-1',
  prompt: 'Rain on a tin roof, slow piano',
  music_length_ms: 3_000,
  force_instrumental: false,
  is_public: false,
};

export function postJson(url: string, body: unknown, own: Record<string, string> = {}): Promise<Response> {
  const headers = { 'Content-Type': 'application/json', ...own };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}
