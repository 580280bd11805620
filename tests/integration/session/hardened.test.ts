/**
 * Every MUST and SHOULD of RFC 10017 for a backend for frontend, of a gateway in production with all settings that
 * harden it, between a certified identity provider and the sandbox's upstream.
 *
 * @see RFC 10017 section 6.1.3
 */

import { afterAll, beforeAll, describe, expect, it } from 'bun:test';
import { decodeProtectedHeader, importJWK, jwtVerify } from 'jose';
import type { Sandbox } from '../../../src/demo/sandbox/sandbox.ts';
import { requestAuthorization, signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { clientKeyPair } from '../../support/client-keys.ts';
import { readDocument, section } from '../../support/documents.ts';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { rawRequest } from '../../support/raw-http.ts';
import { type RecordingProxy, startRecordingProxy } from '../../support/recording-proxy.ts';
import { ROUTES } from '../../support/routes.ts';
import { exchangeCode, SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';
import { sentBack } from '../../support/session-calls.ts';
import { envelopeMessage, ORIGIN, type RequestOptions, request } from '../../support/world.ts';

const PREFIX = '__Host-Http-';
const NAMES = [`${PREFIX}svc_music_access`, `${PREFIX}svc_music_refresh`];
const ATTRIBUTES = NAMES.map((name) => `${name}; Path=/; Max-Age; Secure; HttpOnly; SameSite=Strict`);
const { publicJwk, privateJwk } = clientKeyPair('ES256');
/** As the operating page has it, with keys where it has none. */
const HARDENED_SET = settingsIn(section(await readDocument('deploy/README.md'), '### The hardened set'), {
  COOKIE_KEYS: Buffer.alloc(32, 7).toString('base64url'),
  IDP_CLIENT_KEY: privateJwk,
});

let sandbox: Sandbox;
/** They record what the token endpoint and the upstream received. */
let tokenEndpoint: RecordingProxy;
let upstream: RecordingProxy;
let gateway: GatewayProcess;
/** The session of most tests. */
let signedIn: Awaited<ReturnType<typeof signIn>>;

beforeAll(async () => {
  sandbox = await startTestSandbox({
    credentials: {
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_signing_alg: 'ES256',
      jwks: { keys: [publicJwk] },
    },
  });
  tokenEndpoint = startRecordingProxy(sandbox.identityProviderUrl);
  upstream = startRecordingProxy(sandbox.upstream.url);
  gateway = await startGatewayProcess({
    ...HARDENED_SET,
    UPSTREAM_URL: upstream.url,
    IDP_URL: sandbox.identityProviderUrl,
    IDP_TOKEN_URL: `${tokenEndpoint.url}/oauth/token`,
    IDP_CLIENT_ID: SANDBOX_CLIENT.clientId,
    IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
    ALLOWED_ORIGINS: ORIGIN,
    // Not part of the set: with it a test can end a session by a spent token.
    REFRESH_REPLAY_SECONDS: '0',
  });
  signedIn = await signIn('Amina');
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  upstream[Symbol.dispose]();
  tokenEndpoint[Symbol.dispose]();
  await sandbox.stop();
});

/** The settings in the code block of a section; some with another value. */
function settingsIn(text: string, others: Readonly<Record<string, string>>): Record<string, string> {
  const lines = Array.from(text.matchAll(/^([A-Z_]+)=(.*)$/gm));
  return Object.fromEntries(lines.map(([, name = '', value]) => [name, others[name] ?? value ?? '']));
}

function send(path: string, options: RequestOptions = {}): Promise<Response> {
  return request(gateway.url + path, options);
}

function models(cookie: string): Promise<Response> {
  return send('/api/music/models', { cookie });
}

async function grantFor(name: string) {
  const { identityProviderUrl } = sandbox;
  const { code, codeVerifier } = await signInThroughForm({ ...SANDBOX_CLIENT, identityProviderUrl, name });
  return { code, code_verifier: codeVerifier };
}

/** What a sign-in got and sent, and what the browser then sends back. */
async function signIn(name: string) {
  const grant = await grantFor(name);
  const response = await send('/api/auth/idp', { json: grant });
  expect(response.status).toBe(200);
  const form = new URLSearchParams(tokenEndpoint.exchanges.at(-1)?.body);
  return { grant, response, form, body: await response.text(), cookie: sentBack(response) };
}

/** Names and attributes; the lifetimes belong to the contract. */
function attributesOf(response: Response): string[] {
  return response.headers
    .getSetCookie()
    .map((header) => header.replace(/=[^;]*/, '').replace(/Max-Age=\d+/, 'Max-Age'));
}

/** The tokens that the upstream has issued so far. */
function issuedTokens(): string[] {
  return upstream.exchanges.flatMap(({ responseBody }) =>
    Array.from(responseBody.matchAll(/"(?:access|refresh)_token":\s*"([^"]+)"/g), ([, token = '']) => token),
  );
}

/** Runs the requests, of which none may reach the upstream or the identity provider. */
async function expectNoCall(run: () => Promise<void>): Promise<void> {
  const before = upstream.exchanges.length + tokenEndpoint.exchanges.length;
  await run();
  expect(upstream.exchanges.length + tokenEndpoint.exchanges.length).toBe(before);
}

describe('6.1.3.1 The Authorization Code Grant', () => {
  it('the gateway is a confidential client: its key signs an assertion for this provider alone', async () => {
    const { form } = signedIn;
    const key = await importJWK(publicJwk, 'ES256');
    const audience = sandbox.identityProviderUrl;
    const { payload } = await jwtVerify(form.get('client_assertion') ?? '', key, { audience });
    expect(payload.aud).toBe(audience);
    expect(form.has('client_secret')).toBe(false);
  });

  it('code and verifier are worth nothing to somebody who has no credential', async () => {
    const grant = await grantFor('Stolen');
    const stolen = await exchangeCode(sandbox, grant.code, grant.code_verifier);
    expect(stolen.status).toBe(401);
    expect(await stolen.json()).toMatchObject({ error: 'invalid_client' });
    expect((await send('/api/auth/idp', { json: grant })).status).toBe(200);
  });

  it('the authorization code grant is used, with PKCE', async () => {
    const { form, grant } = signedIn;
    const { grant_type, code, code_verifier } = Object.fromEntries(form);
    expect({ grant_type, code, code_verifier }).toEqual({ grant_type: 'authorization_code', ...grant });
    const another = { ...(await grantFor('Verifier')), code_verifier: 'w'.repeat(43) };
    expect((await send('/api/auth/idp', { json: another })).status).toBe(400);
    const { identityProviderUrl } = sandbox;
    const parameters = { code_challenge: undefined, code_challenge_method: undefined };
    const { landing } = await requestAuthorization({ ...SANDBOX_CLIENT, identityProviderUrl, parameters });
    expect(landing.at === 'client' && landing.redirect.searchParams.get('error')).toBe('invalid_request');
  });
});

describe('6.1.3.2 Cookie Security', () => {
  it('cookies are Secure, HttpOnly and SameSite=Strict, with path / and a prefix, from sign-in to sign-out', async () => {
    const { response, cookie } = await signIn('Cookies');
    expect(attributesOf(response)).toEqual(ATTRIBUTES);
    sandbox.upstream.expireAccessTokens();
    const refreshed = await models(cookie);
    expect(refreshed.status).toBe(200);
    expect(attributesOf(refreshed)).toEqual(ATTRIBUTES);
    expect((await models(sentBack(refreshed))).status).toBe(200);
    const signedOut = await send('/api/auth/logout', { method: 'POST', cookie: sentBack(refreshed) });
    expect(await signedOut.text()).toBe('{"ok":true}');
    expect(attributesOf(signedOut)).toEqual(ATTRIBUTES);
    expect(sentBack(signedOut)).toBe(`${NAMES[0]}=; ${NAMES[1]}=`);
    expect(upstream.exchanges.at(-1)?.target).toBe('/v1/auth/logout');
    expect((await models(sentBack(refreshed))).status).toBe(401);
    signedIn = await signIn('Amina');
  });

  it('the contents are encrypted, and neither a token nor a name without the prefix is a session', async () => {
    const { response, cookie } = signedIn;
    const values = response.headers.getSetCookie().map((header) => Bun.Cookie.parse(header).value);
    for (const value of values) expect(decodeProtectedHeader(value)).toMatchObject({ enc: 'A256GCM' });
    const tokens = issuedTokens();
    expect(tokens.length).toBeGreaterThanOrEqual(2);
    for (const token of tokens) expect(cookie).not.toContain(token);
    await expectNoCall(async () => {
      const plain = NAMES.map((name, index) => `${name}=${tokens.at(index - 2)}`).join('; ');
      for (const each of [plain, cookie.replaceAll(PREFIX, '')])
        expect((await models(each)).status).toBe(401);
    });
  });
});

describe('6.1.3.3 Cross-Site Request Forgery Protections', () => {
  const FOREIGN = [null, 'null', 'http://evil.test', `${ORIGIN}.evil.test`, 'http://blog.studio.test'];

  it.each([...ROUTES, { name: 'sign-out', path: '/api/auth/logout', options: { method: 'POST' } }])(
    '$name needs an allowed origin, also where a browser sends no preflight',
    async ({ path, options }) => {
      const { cookie } = signedIn;
      await expectNoCall(async () => {
        for (const origin of FOREIGN) {
          const headers = { 'content-type': 'text/plain' };
          const response = await send(path, { ...options, origin, cookie, headers });
          expect(response.status).toBe(403);
          expect(response.headers.get('access-control-allow-origin')).toBeNull();
          expect(response.headers.getSetCookie()).toEqual([]);
        }
      });
    },
  );
});

describe('6.1.3.6 Proxy Restrictions', () => {
  it.each([
    ...['http://evil.test/v1/me', '/evil.test/v1/me', 'v2/me', 'v1/../v2/me', 'v1/%2e%2e/v2/me'],
    ...['v1/..%2f..%2fadmin', 'v1/%252e%252e%252fadmin', 'v1/..%5cadmin', 'v1/auth/refresh', 'v1/auth/idp'],
  ])('%s is not a permitted destination', async (target) => {
    const { cookie } = signedIn;
    const head = `POST /api/upstream/${target} HTTP/1.1\r\nHost: evil.test\r\nOrigin: ${ORIGIN}\r\n`;
    const rest = `Cookie: ${cookie}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
    await expectNoCall(async () => {
      expect((await rawRequest(Number(new URL(gateway.url).port), head + rest)).status).toBe(404);
    });
  });

  it('a permitted request gets the token, and neither cookie nor Origin', async () => {
    const response = await send('/api/upstream/v1/billing/balance', { cookie: signedIn.cookie });
    expect(response.status).toBe(200);
    const received = upstream.exchanges.at(-1);
    expect(received?.target).toBe('/v1/billing/balance');
    const bearer = received?.headers.get('authorization') ?? '';
    expect(issuedTokens().map((token) => `Bearer ${token}`)).toContain(bearer);
    expect(received?.headers.get('cookie')).toBeNull();
    expect(received?.headers.get('origin')).toBeNull();
  });
});

describe('6.1.2 Implementation Details', () => {
  it('the session check says who is signed in, and no body has a token', async () => {
    expect(await (await send('/api/auth/session')).json()).toEqual({ authenticated: false });
    const session = await send('/api/auth/session', { cookie: signedIn.cookie });
    expect(session.status).toBe(200);
    const profile = await session.text();
    expect(profile).toContain('Amina');
    const bodies = signedIn.body + profile + JSON.stringify([...session.headers]);
    for (const token of issuedTokens()) expect(bodies).not.toContain(token);
  });

  it('a session ends with its refresh token', async () => {
    const { cookie } = await signIn('Ended');
    sandbox.upstream.expireAccessTokens();
    expect((await models(cookie)).status).toBe(200);
    // The token is spent and there is no replay, so the upstream sees a reuse.
    const response = await models(cookie);
    await envelopeMessage(response, 401);
    expect(attributesOf(response)).toEqual(ATTRIBUTES);
    expect(sentBack(response)).toBe(`${NAMES[0]}=; ${NAMES[1]}=`);
  });
});
