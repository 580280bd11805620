/** The gateway as a confidential client, before a certified identity provider. */

import { describe, expect, it } from 'bun:test';
import { decodeJwt, decodeProtectedHeader, importJWK, type JWK, jwtVerify } from 'jose';
import type { ClientCredentials } from '../../../src/demo/sandbox/identity-provider/identity-provider.ts';
import { signInThroughForm } from '../../../src/demo/tour/sign-in-through-form.ts';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { clientKeyPair, SIGNING_ALGORITHMS } from '../../support/client-keys.ts';
import { ROOT } from '../../support/documents.ts';
import { startRecordingProxy } from '../../support/recording-proxy.ts';
import { SANDBOX_CLIENT, startTestSandbox } from '../../support/sandbox-account.ts';
import {
  expectRefused,
  GRANT,
  reply,
  SIGN_IN,
  scriptSignIn,
  signIn,
  TOKEN,
} from '../../support/session-calls.ts';
import { startWorld, storedTokens } from '../../support/world.ts';

const SECRET = 's3cr3t: +%&=/~"\\';
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
/** A public client sends these too, in this order. */
const FORM = ['grant_type', 'code', 'code_verifier', 'client_id', 'redirect_uri'];
const { redirectUri } = SANDBOX_CLIENT;

/** Signs in once; the call to the provider's token endpoint is recorded on its way. */
async function signInAt(credentials: ClientCredentials, environment: Environment, clientId = 'studio') {
  await using stack = new AsyncDisposableStack();
  const sandbox = await startTestSandbox({ clientId, credentials });
  stack.defer(() => sandbox.stop());
  const { identityProviderUrl } = sandbox;
  const tokenEndpoint = stack.use(startRecordingProxy(identityProviderUrl));
  const world = stack.use(
    startWorld({
      UPSTREAM_URL: sandbox.upstream.url,
      IDP_URL: identityProviderUrl,
      IDP_TOKEN_URL: `${tokenEndpoint.url}/oauth/token`,
      IDP_CLIENT_ID: clientId,
      IDP_REDIRECT_URI: redirectUri,
      ...environment,
    }),
  );
  const { code, codeVerifier } = await signInThroughForm({ clientId, redirectUri, identityProviderUrl });
  const response = await signIn(world, { code, code_verifier: codeVerifier });
  const received = tokenEndpoint.exchanges.at(-1);
  if (!received) throw new Error('the token endpoint was not asked');
  expect(`${received.method} ${received.target}`).toBe('POST /oauth/token');
  expect(received.headers.get('content-type')).toBe('application/x-www-form-urlencoded');
  expect(received.headers.get('accept')).toBe('application/json');
  const form = new URLSearchParams(received.body);
  return {
    response,
    received,
    form,
    code,
    codeVerifier,
    log: JSON.stringify(world.lines),
    line: world.lines.at(-1),
  };
}

type SignedIn = Awaited<ReturnType<typeof signInAt>>;

async function expectSignedIn({ response }: SignedIn): Promise<void> {
  expect(response.status).toBe(200);
  expect(await response.text()).toBe('{"ok":true}');
  expect(Object.keys(storedTokens(response))).toEqual(['svc_music_access', 'svc_music_refresh']);
}

/** Asserts that the registration is blamed, not the user. */
async function expectClientRefused(
  { response, received, log, line }: SignedIn,
  secrets: string[],
): Promise<void> {
  expect(received.status).toBe(401);
  await expectRefused(response, 401, 'clientRefused');
  expect(response.headers.get('www-authenticate')).toBeNull();
  const reason = { reason: 'clientRefused', oauthError: 'invalid_client' };
  expect(line).toMatchObject({ level: 'warn', status: 401, ...reason });
  for (const secret of secrets) expect(log).not.toContain(secret);
}

function privateKeyJwt(publicJwk: JWK): ClientCredentials {
  return {
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: 'ES256',
    jwks: { keys: [publicJwk] },
  };
}

function clientSecretBasic(secret: string): ClientCredentials {
  return { token_endpoint_auth_method: 'client_secret_basic', client_secret: secret };
}

describe('IDP_CLIENT_SECRET', () => {
  it.each(['studio', 'a client: 100% & more'])(
    'is sent as client_secret_basic, form-encoded, with the client ID %j, and not in the body',
    async (clientId) => {
      const signedIn = await signInAt(clientSecretBasic(SECRET), { IDP_CLIENT_SECRET: SECRET }, clientId);
      await expectSignedIn(signedIn);
      const { received, form, code, codeVerifier } = signedIn;
      const [scheme, credentials = ''] = received.headers.get('authorization')?.split(' ') ?? [];
      expect(scheme).toBe('Basic');
      const parts = Buffer.from(credentials, 'base64').toString().split(':');
      expect(parts.map((part) => new URLSearchParams(`x=${part}`).get('x'))).toEqual([clientId, SECRET]);
      expect([...form.keys()]).toEqual(FORM);
      expect([...form.values()]).toEqual(['authorization_code', code, codeVerifier, clientId, redirectUri]);
    },
  );

  it('that is wrong is a fault of the registration', async () => {
    const signedIn = await signInAt(clientSecretBasic('another'), { IDP_CLIENT_SECRET: SECRET });
    await expectClientRefused(signedIn, ['s3cr3t']);
  });

  it('that is missing is a fault of the registration', async () => {
    const signedIn = await signInAt(clientSecretBasic(SECRET), {});
    await expectClientRefused(signedIn, []);
    expect(signedIn.received.headers.get('authorization')).toBeNull();
    expect([...signedIn.form.keys()]).toEqual(FORM);
  });
});

describe('IDP_CLIENT_KEY', () => {
  it('authenticates by private_key_jwt', async () => {
    const { publicJwk, privateJwk } = clientKeyPair('ES256');
    const signedIn = await signInAt(privateKeyJwt(publicJwk), { IDP_CLIENT_KEY: privateJwk });
    await expectSignedIn(signedIn);
    const { received, form } = signedIn;
    expect(received.headers.get('authorization')).toBeNull();
    expect([...form.keys()]).toEqual([...FORM, 'client_assertion_type', 'client_assertion']);
    expect(form.get('client_assertion_type')).toBe(ASSERTION_TYPE);
  });

  it.each(SIGNING_ALGORITHMS)('signs an assertion with %s that its public key verifies', async (alg) => {
    const { publicJwk, privateJwk, secrets } = clientKeyPair(alg);
    await using world = startWorld({ IDP_CLIENT_KEY: privateJwk });
    scriptSignIn(world);
    const ids = new Set<unknown>();
    for (let round = 0; round < 2; round++) {
      const before = Math.floor(Date.now() / 1000);
      expect((await signIn(world)).status).toBe(200);
      const { body, headers } = world.upstream.last(TOKEN);
      expect(headers.get('authorization')).toBeNull();
      const assertion = new URLSearchParams(body).get('client_assertion') ?? '';
      const key = await importJWK(publicJwk, alg);
      const { payload, protectedHeader } = await jwtVerify(assertion, key, { algorithms: [alg] });
      expect(protectedHeader).toMatchObject({ alg, kid: 'gateway-1' });
      const { iat = 0, exp = 0 } = payload;
      const jti = expect.stringMatching(/^[\w-]{22,}$/);
      const aud = world.upstream.identityProviderUrl;
      expect(payload).toMatchObject({ iss: 'studio', sub: 'studio', aud, jti });
      expect(iat).toBeGreaterThanOrEqual(before);
      expect(exp - iat).toBe(60);
      ids.add(payload.jti);
      for (const secret of secrets) expect(body).not.toContain(secret);
    }
    expect(ids.size).toBe(2);
    expect(world.upstream.calls).toEqual([TOKEN, SIGN_IN, TOKEN, SIGN_IN]);
  });

  it.each(['https://idp.test', 'https://idp.test/', 'https://IDP.test/tenant/'])(
    'names IDP_URL as the only audience, letter by letter: %s',
    async (issuer) => {
      const { privateJwk } = clientKeyPair('ES256');
      await using tokens = startWorld();
      const tokenUrl = `${tokens.upstream.identityProviderUrl}/token?tenant=1`;
      const environment = { IDP_CLIENT_KEY: privateJwk, IDP_URL: issuer, IDP_TOKEN_URL: tokenUrl };
      await using world = startWorld(environment);
      tokens.upstream.on('POST /token?tenant=1', reply(400, { error: 'invalid_grant' }));
      await expectRefused(await signIn(world), 400, 'signInRefused');
      const form = new URLSearchParams(tokens.upstream.last('POST /token?tenant=1').body);
      expect(decodeJwt(form.get('client_assertion') ?? '').aud).toBe(issuer);
      expect(world.upstream.calls).toEqual([]);
    },
  );

  it('can be a PEM, which names no key', async () => {
    const { publicJwk, pem } = clientKeyPair('ES256');
    const signedIn = await signInAt(privateKeyJwt(publicJwk), { IDP_CLIENT_KEY: pem });
    await expectSignedIn(signedIn);
    const assertion = signedIn.form.get('client_assertion') ?? '';
    expect(decodeProtectedHeader(assertion)).toEqual({ alg: 'ES256' });
  });

  it('that is not the registered one is a fault of the registration', async () => {
    const { publicJwk } = clientKeyPair('ES256');
    const { privateJwk, secrets } = clientKeyPair('ES256');
    const signedIn = await signInAt(privateKeyJwt(publicJwk), { IDP_CLIENT_KEY: privateJwk });
    await expectClientRefused(signedIn, secrets);
  });
});

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

it.each([
  [false, {}],
  [true, { IDP_CLIENT_SECRET: SECRET }],
])(
  'The library that authenticates the client is loaded (%p) only with a credential',
  async (isLoaded, environment) => {
    await using world = startWorld();
    world.upstream.on(TOKEN, reply(400, { error: 'invalid_grant' }));
    const child = Bun.spawn([process.execPath, '-e', LOADS, JSON.stringify(GRANT)], {
      cwd: ROOT,
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
    expect(world.upstream.calls).toEqual([TOKEN]);
  },
);
