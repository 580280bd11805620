/**
 * What RFC 10017 asks of a backend for frontend beyond the contract, of a gateway in production with all settings that
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
const SETTINGS = PAGE.matchAll(/^([A-Z_]+)=(.*)$/gm);
const HARDENED_SET = Array.from(SETTINGS, ([, name = '', value = '']) => [name, SECRETS.get(name) ?? value]);

let sandbox: Sandbox;
let upstream: RecordingProxy;
let gateway: GatewayProcess;

beforeAll(async () => {
  const credentials = {
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: 'ES256',
    jwks: { keys: [publicJwk] },
  } as const;
  sandbox = await startTestSandbox({ credentials });
  upstream = startRecordingProxy(sandbox.upstream.url);
  gateway = await startGatewayProcess({
    ...Object.fromEntries(HARDENED_SET),
    UPSTREAM_URL: upstream.url,
    IDP_URL: sandbox.identityProviderUrl,
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

async function signIn(name: string): Promise<Response> {
  const response = await send('/api/auth/idp', { json: await grantFor(name) });
  expect(response.status).toBe(200);
  return response;
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
  const another = { ...(await grantFor('Verifier')), code_verifier: 'w'.repeat(43) };
  expect((await send('/api/auth/idp', { json: another })).status).toBe(400);
});

it('6.1.3.2: cookies have encrypted contents, and all attributes and a prefix until the session ends', async () => {
  const response = await signIn('Cookies');
  expectHardened(response);
  const cookie = sentBack(response);
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
  expectCleared(await send('/api/auth/logout', { method: 'POST', cookie: sentBack(refreshed) }));
  expect(upstream.exchanges.at(-1)?.target).toBe('/v1/auth/logout');
  expect((await models(sentBack(refreshed))).status).toBe(401);
});

it('6.1.2: no response has a token, and a session ends with its refresh token', async () => {
  const cookie = sentBack(await signIn('Amina'));
  const session = await send('/api/auth/session', { cookie });
  const shown = (await session.text()) + JSON.stringify([...session.headers]);
  expect(shown).toContain('Amina');
  for (const token of issuedTokens()) expect(shown).not.toContain(token);
  sandbox.upstream.expireAccessTokens();
  expect((await models(cookie)).status).toBe(200);
  // The token is spent and there is no replay after its millisecond, so the upstream sees a reuse.
  await Bun.sleep(2);
  const ended = await models(cookie);
  expect(ended.status).toBe(401);
  expectCleared(ended);
});
