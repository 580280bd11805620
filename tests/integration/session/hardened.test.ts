/**
 * Every MUST and SHOULD of RFC 10017 for a backend for frontend, of a gateway in production with all settings that
 * harden it, between a certified identity provider and the sandbox's upstream. Each in all its cases: SECURITY.md.
 *
 * @see RFC 10017 section 6.1.3
 */

import { afterAll, beforeAll, expect, it } from 'bun:test';
import { decodeProtectedHeader } from 'jose';
import type { Sandbox } from '../../../src/demo/sandbox/sandbox.ts';
import { signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import { clientKeyPair } from '../../support/client-keys.ts';
import { readDocument, section } from '../../support/documents.ts';
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts';
import { exchangeCode, SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';
import { sentBack } from '../../support/session-calls.ts';
import { ORIGIN, type RequestOptions, request } from '../../support/world.ts';
import { type RecordingProxy, startRecordingProxy } from './recording-proxy.ts';

const PREFIX = '__Host-Http-';
const NAMES = [`${PREFIX}svc_music_access`, `${PREFIX}svc_music_refresh`];
const ATTRIBUTES = NAMES.map((name) => `${name}; Path=/; Max-Age; Secure; HttpOnly; SameSite=Strict`);
const { publicJwk, privateJwk } = clientKeyPair('ES256');
const SECRETS = new Map([
  ['COOKIE_KEYS', Buffer.alloc(32, 7).toString('base64url')],
  ['IDP_CLIENT_KEY', privateJwk],
]);
/** As the operating page has it, with keys where it has none. */
const PAGE = section(await readDocument('deploy/README.md'), '### The hardened set');
const HARDENED_SET = Object.fromEntries(
  Array.from(PAGE.matchAll(/^([A-Z_]+)=(.*)$/gm), ([, name = '', value = '']) => [
    name,
    SECRETS.get(name) ?? value,
  ]),
);

let sandbox: Sandbox;
/** They record what the token endpoint and the upstream received. */
let tokenEndpoint: RecordingProxy;
let upstream: RecordingProxy;
let gateway: GatewayProcess;

beforeAll(async () => {
  const credentials = {
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: 'ES256',
    jwks: { keys: [publicJwk] },
  } as const;
  sandbox = await startTestSandbox({ credentials });
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
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  upstream[Symbol.dispose]();
  tokenEndpoint[Symbol.dispose]();
  await sandbox.stop();
});

function send(path: string, options: RequestOptions = {}): Promise<Response> {
  return request(gateway.url + path, options);
}

const models = (cookie: string) => send('/api/music/models', { cookie });

async function grantFor(name: string) {
  const { identityProviderUrl } = sandbox;
  const { code, codeVerifier } = await signInThroughForm({ ...SANDBOX_CLIENT, identityProviderUrl, name });
  return { code, code_verifier: codeVerifier };
}

async function signIn(name: string) {
  const grant = await grantFor(name);
  const response = await send('/api/auth/idp', { json: grant });
  expect(response.status).toBe(200);
  return { grant, response, cookie: sentBack(response) };
}

/** Asserts names and attributes; the lifetimes belong to the contract. */
function expectHardened(response: Response): void {
  const lines = response.headers.getSetCookie();
  const found = lines.map((line) => line.replace(/=[^;]*/, '').replace(/Max-Age=\d+/, 'Max-Age'));
  expect(found).toEqual(ATTRIBUTES);
}

function expectCleared(response: Response): void {
  expectHardened(response);
  expect(sentBack(response)).toBe(NAMES.map((name) => `${name}=`).join('; '));
}

/** The tokens that the upstream has issued so far. */
function issuedTokens(): string[] {
  return upstream.exchanges.flatMap(({ responseBody }) =>
    Array.from(responseBody.matchAll(/"(?:access|refresh)_token":\s*"([^"]+)"/g), ([, token = '']) => token),
  );
}

it('6.1.3.1: code and verifier are worth nothing without the key of the gateway, or without each other', async () => {
  const grant = await grantFor('Stolen');
  const stolen = await exchangeCode(sandbox, grant.code, grant.code_verifier);
  expect(stolen.status).toBe(401);
  expect(await stolen.json()).toMatchObject({ error: 'invalid_client' });
  expect((await send('/api/auth/idp', { json: grant })).status).toBe(200);
  const form = Object.fromEntries(new URLSearchParams(tokenEndpoint.exchanges.at(-1)?.body));
  expect(form).toMatchObject({ grant_type: 'authorization_code', ...grant });
  expect(form['client_assertion']).toBeString();
  const another = { ...(await grantFor('Verifier')), code_verifier: 'w'.repeat(43) };
  expect((await send('/api/auth/idp', { json: another })).status).toBe(400);
});

it('6.1.3.2: cookies have all attributes and a prefix until the session ends, and encrypted contents', async () => {
  const { response, cookie } = await signIn('Cookies');
  expectHardened(response);
  for (const line of response.headers.getSetCookie()) {
    expect(decodeProtectedHeader(Bun.Cookie.parse(line).value)).toMatchObject({ enc: 'A256GCM' });
  }
  const tokens = issuedTokens();
  expect(tokens.length).toBeGreaterThanOrEqual(2);
  for (const token of tokens) expect(cookie).not.toContain(token);
  const before = upstream.exchanges.length;
  const plain = NAMES.map((name, index) => `${name}=${tokens.at(index - 2)}`).join('; ');
  // Neither a token nor another name is a session.
  for (const each of [plain, cookie.replaceAll(PREFIX, '')]) expect((await models(each)).status).toBe(401);
  expect(upstream.exchanges).toHaveLength(before);
  sandbox.upstream.expireAccessTokens();
  const refreshed = await models(cookie);
  expect(refreshed.status).toBe(200);
  expectHardened(refreshed);
  const signedOut = await send('/api/auth/logout', { method: 'POST', cookie: sentBack(refreshed) });
  expectCleared(signedOut);
  expect(upstream.exchanges.at(-1)?.target).toBe('/v1/auth/logout');
  expect((await models(sentBack(refreshed))).status).toBe(401);
});

it('6.1.3.3 and 6.1.3.6: other origins and destinations are refused, and a permitted call gets the token alone', async () => {
  const { cookie } = await signIn('Requests');
  const before = upstream.exchanges.length;
  expect((await send('/api/music/models', { cookie, origin: 'http://evil.test' })).status).toBe(403);
  for (const target of ['v1/auth/refresh', 'v2/me', 'http://evil.test/v1/me']) {
    expect((await send(`/api/upstream/${target}`, { method: 'POST', cookie })).status).toBe(404);
  }
  expect(upstream.exchanges).toHaveLength(before);
  expect((await send('/api/upstream/v1/billing/balance', { cookie })).status).toBe(200);
  const received = upstream.exchanges.at(-1);
  expect(received?.target).toBe('/v1/billing/balance');
  expect(issuedTokens()).toContain(received?.headers.get('authorization')?.replace('Bearer ', '') ?? '');
  for (const name of ['cookie', 'origin']) expect(received?.headers.get(name)).toBeNull();
});

it('6.1.2: the session check says who is signed in, no response has a token, and a session ends with its refresh token', async () => {
  expect(await (await send('/api/auth/session')).json()).toEqual({ authenticated: false });
  const { cookie } = await signIn('Amina');
  const session = await send('/api/auth/session', { cookie });
  const profile = await session.text();
  expect(profile).toContain('Amina');
  for (const token of issuedTokens())
    expect(profile + JSON.stringify([...session.headers])).not.toContain(token);
  sandbox.upstream.expireAccessTokens();
  expect((await models(cookie)).status).toBe(200);
  // The token is spent and there is no replay after its millisecond, so the upstream sees a reuse.
  await Bun.sleep(2);
  const ended = await models(cookie);
  expect(ended.status).toBe(401);
  expectCleared(ended);
});
