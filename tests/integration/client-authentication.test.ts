/** The gateway as a confidential client, before a certified identity provider. */

import { describe, expect, it } from 'bun:test';
import { importJWK, type JWK, jwtVerify } from 'jose';
import type { ClientCredentials } from '../../src/demo/sandbox/identity-provider/identity-provider.ts';
import { signInThroughForm } from '../../src/demo/tour/sign-in-through-form.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { messages } from '../../src/gateway/http/messages.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { clientKeyPair, SIGNING_ALGORITHMS, type SigningAlgorithm } from '../support/client-keys.ts';
import { recordLog } from '../support/recorded-log.ts';
import { type Exchange, startRecordingProxy } from '../support/recording-proxy.ts';
import { SANDBOX_CLIENT, startTestSandbox } from '../support/sandbox-account.ts';
import { envelopeMessage, request, startWorld, storedTokens, testSettings } from '../support/world.ts';

const SECRET = 's3cr3t: +%&=/~"\\';
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
/** The provider takes the others only when it is configured for them. */
const PROVIDER_ALGORITHMS: readonly SigningAlgorithm[] = ['ES256', 'Ed25519', 'RS256', 'PS256'];

/** A gateway whose calls to the provider's token endpoint are recorded on their way. */
async function startConfidential(credentials: ClientCredentials, environment: Environment, clientId: string) {
  await using stack = new AsyncDisposableStack();
  const sandbox = await startTestSandbox({ clientId, credentials });
  stack.defer(() => sandbox.stop());
  const tokenEndpoint = stack.use(startRecordingProxy(sandbox.identityProviderUrl));
  const { logger, lines } = recordLog();
  const settings = testSettings({
    UPSTREAM_URL: sandbox.upstream.url,
    IDP_URL: sandbox.identityProviderUrl,
    IDP_TOKEN_URL: `${tokenEndpoint.url}/oauth/token`,
    IDP_CLIENT_ID: clientId,
    IDP_REDIRECT_URI: SANDBOX_CLIENT.redirectUri,
    ...environment,
  });
  const gateway = createGateway({ settings, logger });
  gateway.listen({ port: 0, hostname: '127.0.0.1' });
  stack.defer(async () => {
    await gateway.stop(true);
  });
  const started = stack.move();
  return {
    issuer: sandbox.identityProviderUrl,
    lines,
    async signIn() {
      const { identityProviderUrl } = sandbox;
      const { redirectUri } = SANDBOX_CLIENT;
      const grant = await signInThroughForm({ clientId, redirectUri, identityProviderUrl });
      const json = { code: grant.code, code_verifier: grant.codeVerifier };
      const response = await request(`http://127.0.0.1:${gateway.server?.port}/api/auth/idp`, { json });
      const received = tokenEndpoint.exchanges.at(-1);
      if (!received) throw new Error('the token endpoint was not asked');
      return { response, received, form: new URLSearchParams(received.body), grant };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

function startWithKey(alg: SigningAlgorithm) {
  const pair = clientKeyPair(alg);
  const credentials = privateKeyJwt(pair.publicJwk, alg);
  return startConfidential(credentials, { IDP_CLIENT_KEY: pair.privateJwk }, 'studio');
}

function privateKeyJwt(publicJwk: JWK, alg: SigningAlgorithm): ClientCredentials {
  return {
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: alg,
    jwks: { keys: [publicJwk] },
  };
}

function clientSecretBasic(secret: string): ClientCredentials {
  return { token_endpoint_auth_method: 'client_secret_basic', client_secret: secret };
}

/** The order in which a public client sends them, too. */
const FORM = ['grant_type', 'code', 'code_verifier', 'client_id', 'redirect_uri'];

function expectForm({ method, target, headers }: Exchange): void {
  expect(`${method} ${target}`).toBe('POST /oauth/token');
  expect(headers.get('content-type')).toBe('application/x-www-form-urlencoded');
  expect(headers.get('accept')).toBe('application/json');
}

describe('IDP_CLIENT_SECRET', () => {
  it.each(['studio', 'a client: 100% & more'])(
    'is sent as client_secret_basic, form-encoded, with the client ID %j, and not in the body',
    async (clientId) => {
      const environment = { IDP_CLIENT_SECRET: SECRET };
      await using world = await startConfidential(clientSecretBasic(SECRET), environment, clientId);
      const { response, received, form, grant } = await world.signIn();
      expect(response.status).toBe(200);
      expect(await response.text()).toBe('{"ok":true}');
      expect(Object.keys(storedTokens(response))).toEqual(['svc_music_access', 'svc_music_refresh']);
      expectForm(received);
      const [scheme, credentials = ''] = received.headers.get('authorization')?.split(' ') ?? [];
      expect(scheme).toBe('Basic');
      const parts = Buffer.from(credentials, 'base64').toString().split(':');
      expect(parts.map((part) => new URLSearchParams(`x=${part}`).get('x'))).toEqual([clientId, SECRET]);
      expect([...form]).toEqual([
        ['grant_type', 'authorization_code'],
        ['code', grant.code],
        ['code_verifier', grant.codeVerifier],
        ['client_id', clientId],
        ['redirect_uri', SANDBOX_CLIENT.redirectUri],
      ]);
    },
  );

  it('that is wrong is a fault of the registration: 401, a text of its own and a warning', async () => {
    const environment = { IDP_CLIENT_SECRET: SECRET };
    await using world = await startConfidential(clientSecretBasic('another'), environment, 'studio');
    const { response, received } = await world.signIn();
    expect(received.status).toBe(401);
    expect(await envelopeMessage(response, 401)).toBe(messages.clientRefused.en);
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(response.headers.get('www-authenticate')).toBeNull();
    const line = world.lines.at(-1);
    expect(line).toMatchObject({
      level: 'warn',
      status: 401,
      reason: 'clientRefused',
      oauthError: 'invalid_client',
    });
    expect(JSON.stringify(world.lines)).not.toContain('s3cr3t');
  });
});

describe('IDP_CLIENT_KEY', () => {
  it.each(PROVIDER_ALGORITHMS)('authenticates by private_key_jwt with %s', async (alg) => {
    await using world = await startWithKey(alg);
    const { response, received, form } = await world.signIn();
    expect(response.status).toBe(200);
    expect(Object.keys(storedTokens(response))).toEqual(['svc_music_access', 'svc_music_refresh']);
    expectForm(received);
    expect(received.headers.get('authorization')).toBeNull();
    expect([...form.keys()]).toEqual([...FORM, 'client_assertion_type', 'client_assertion']);
    expect(form.get('client_assertion_type')).toBe(ASSERTION_TYPE);
  });

  it.each(SIGNING_ALGORITHMS)('signs an assertion with %s that its public key verifies', async (alg) => {
    const { publicJwk, privateJwk, secrets } = clientKeyPair(alg);
    await using world = startWorld({ IDP_CLIENT_KEY: privateJwk });
    world.upstream
      .on('POST /oauth/token', () => Response.json({ access_token: 'identity-1' }))
      .on('POST /v1/auth/idp', () => Response.json({ access_token: 'a', refresh_token: 'r' }));
    const ids = new Set<unknown>();
    for (let round = 0; round < 2; round++) {
      const before = Math.floor(Date.now() / 1000);
      expect((await world.request('/api/auth/idp', { json: GRANT })).status).toBe(200);
      const { body, headers } = world.upstream.last('POST /oauth/token');
      expect(headers.get('authorization')).toBeNull();
      const assertion = new URLSearchParams(body).get('client_assertion') ?? '';
      const key = await importJWK(publicJwk, alg);
      const { payload, protectedHeader } = await jwtVerify(assertion, key, { algorithms: [alg] });
      expect(protectedHeader).toMatchObject({ alg, kid: 'gateway-1' });
      const { iat = 0, exp = 0 } = payload;
      expect(payload).toMatchObject({
        iss: 'studio',
        sub: 'studio',
        aud: world.upstream.identityProviderUrl,
        jti: expect.stringMatching(/^[\w-]{22,}$/),
      });
      expect(iat).toBeGreaterThanOrEqual(before);
      expect(exp - iat).toBe(60);
      ids.add(payload.jti);
      for (const secret of secrets) expect(body).not.toContain(secret);
    }
    expect(ids.size).toBe(2);
    expect(world.upstream.calls).toEqual([
      ...['POST /oauth/token', 'POST /v1/auth/idp'],
      ...['POST /oauth/token', 'POST /v1/auth/idp'],
    ]);
  });

  it.each(['https://idp.test', 'https://idp.test/', 'https://IDP.test/tenant/'])(
    'names IDP_URL as the only audience, letter by letter: %s',
    async (issuer) => {
      const { privateJwk } = clientKeyPair('ES256');
      await using tokens = startWorld();
      const tokenUrl = `${tokens.upstream.identityProviderUrl}/token?tenant=1`;
      await using world = startWorld({
        IDP_CLIENT_KEY: privateJwk,
        IDP_URL: issuer,
        IDP_TOKEN_URL: tokenUrl,
      });
      tokens.upstream.on('POST /token?tenant=1', () => Response.json({ error: 'invalid_grant' }, STATUS_400));
      const response = await world.request('/api/auth/idp', { json: GRANT });
      expect(await envelopeMessage(response, 400)).toBe(messages.signInRefused.en);
      const { body } = tokens.upstream.last('POST /token?tenant=1');
      const [, payload = ''] = new URLSearchParams(body).get('client_assertion')?.split('.') ?? [];
      expect(JSON.parse(Buffer.from(payload, 'base64url').toString()).aud).toBe(issuer);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  it('can be a PEM, which names no key', async () => {
    const { publicJwk, pem } = clientKeyPair('ES256');
    const credentials = privateKeyJwt(publicJwk, 'ES256');
    await using world = await startConfidential(credentials, { IDP_CLIENT_KEY: pem }, 'studio');
    const { response, form } = await world.signIn();
    expect(response.status).toBe(200);
    const [header = ''] = form.get('client_assertion')?.split('.') ?? [];
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ alg: 'ES256' });
  });

  it('that is not the registered one is a fault of the registration', async () => {
    const { publicJwk } = clientKeyPair('ES256');
    const { privateJwk, secrets } = clientKeyPair('ES256');
    const credentials = privateKeyJwt(publicJwk, 'ES256');
    await using world = await startConfidential(credentials, { IDP_CLIENT_KEY: privateJwk }, 'studio');
    const { response } = await world.signIn();
    expect(await envelopeMessage(response, 401)).toBe(messages.clientRefused.en);
    expect(world.lines.at(-1)).toMatchObject({ level: 'warn', oauthError: 'invalid_client' });
    for (const secret of secrets) expect(JSON.stringify(world.lines)).not.toContain(secret);
  });
});

describe('a gateway without either', () => {
  it('is refused by a provider that has registered a confidential client', async () => {
    await using world = await startConfidential(clientSecretBasic(SECRET), {}, 'studio');
    const { response, received, form } = await world.signIn();
    expect(await envelopeMessage(response, 401)).toBe(messages.clientRefused.en);
    expect(received.headers.get('authorization')).toBeNull();
    expect([...form.keys()]).toEqual(FORM);
  });

  it.each([
    ['is not loaded without them', {}, false],
    ['is loaded with a secret', { IDP_CLIENT_SECRET: SECRET }, true],
  ])('the library that authenticates %s', async (_, environment, isLoaded) => {
    await using world = startWorld();
    world.upstream.on('POST /oauth/token', () => Response.json({ error: 'invalid_grant' }, STATUS_400));
    const child = Bun.spawn([process.execPath, '-e', LOADS, JSON.stringify(GRANT)], {
      cwd: new URL('../..', import.meta.url).pathname,
      env: {
        UPSTREAM_URL: world.upstream.upstreamUrl,
        IDP_URL: world.upstream.identityProviderUrl,
        IDP_CLIENT_ID: 'studio',
        IDP_REDIRECT_URI: 'http://studio.test/callback',
        ALLOWED_ORIGINS: 'http://studio.test',
        ...environment,
      },
      stdout: 'pipe',
    });
    expect(JSON.parse(await child.stdout.text())).toEqual({ status: 400, isLoaded });
    expect(world.upstream.calls).toEqual(['POST /oauth/token']);
  });
});

const GRANT = { code: 'code-1', code_verifier: 'v'.repeat(43) };
const STATUS_400 = { status: 400 };

/** Signs in once and says whether the library is among the modules of the process. */
const LOADS = `
  const { createGateway } = await import('./src/gateway/gateway.ts');
  const { parseSettings } = await import('./src/gateway/settings/settings.ts');
  const { createLogger } = await import('./src/gateway/telemetry/logger.ts');
  const { settings } = parseSettings(process.env);
  const gateway = createGateway({ settings, logger: createLogger('silent', { write() {} }) });
  const { status } = await gateway.handle(
    new Request('http://localhost/api/auth/idp', {
      method: 'POST',
      headers: { origin: 'http://studio.test', 'content-type': 'application/json' },
      body: process.argv[1],
    }),
  );
  const isLoaded = Object.keys(require.cache).some((name) => name.includes('/oauth4webapi/'));
  console.log(JSON.stringify({ status, isLoaded }));
  process.exit(0);
`;
