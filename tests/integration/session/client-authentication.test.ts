/** The gateway as a confidential client. Before a certified identity provider: hardened.test.ts and check-config. */

import { describe, expect, it } from 'bun:test';
import { decodeProtectedHeader, importJWK, jwtVerify } from 'jose';
import type { Environment } from '../../../src/gateway/settings/environment-reader.ts';
import { clientKeyPair, SIGNING_ALGORITHMS } from '../../support/client-keys.ts';
import { expectRefused, reply, scriptSignIn, signIn, TOKEN } from '../../support/session-calls.ts';
import { startWorld } from '../../support/world.ts';

const SECRET = 's3cr3t: +%&=/~"\\';
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
/** A public client sends these too, in this order. */
const FORM = ['grant_type', 'code', 'code_verifier', 'client_id', 'redirect_uri'];

/** Signs in, and returns what the token endpoint received. */
async function exchange(environment: Environment, refusal?: object) {
  await using world = startWorld(environment);
  scriptSignIn(world);
  if (refusal) world.upstream.on(TOKEN, reply(401, refusal));
  const response = await signIn(world);
  const { headers, body } = world.upstream.last(TOKEN);
  const form = new URLSearchParams(body);
  const assertion = form.get('client_assertion') ?? '';
  const audience = world.upstream.identityProviderUrl;
  return { response, headers, body, form, assertion, audience, log: JSON.stringify(world.lines) };
}

it('IDP_CLIENT_SECRET is sent as client_secret_basic, form-encoded, and not in the body', async () => {
  const clientId = 'a client: 100% & more';
  const { response, headers, form } = await exchange({ IDP_CLIENT_ID: clientId, IDP_CLIENT_SECRET: SECRET });
  expect(response.status).toBe(200);
  const [scheme, credentials = ''] = headers.get('authorization')?.split(' ') ?? [];
  expect(scheme).toBe('Basic');
  const parts = Buffer.from(credentials, 'base64').toString().split(':');
  expect(parts.map((part) => new URLSearchParams(`x=${part}`).get('x'))).toEqual([clientId, SECRET]);
  expect([...form.keys()]).toEqual(FORM);
});

describe('IDP_CLIENT_KEY', () => {
  it.each(SIGNING_ALGORITHMS)(
    'signs assertions with %s that its public key verifies, each once',
    async (alg) => {
      const { publicJwk, privateJwk, secrets } = clientKeyPair(alg);
      const ids = new Set<unknown>();
      for (let round = 0; round < 2; round++) {
        const before = Math.floor(Date.now() / 1000);
        const { response, headers, body, form, assertion, audience } = await exchange({
          IDP_CLIENT_KEY: privateJwk,
        });
        expect(response.status).toBe(200);
        expect(headers.get('authorization')).toBeNull();
        expect([...form.keys()]).toEqual([...FORM, 'client_assertion_type', 'client_assertion']);
        expect(form.get('client_assertion_type')).toBe(ASSERTION_TYPE);
        const key = await importJWK(publicJwk, alg);
        const { payload, protectedHeader } = await jwtVerify(assertion, key, { algorithms: [alg] });
        expect(protectedHeader).toMatchObject({ alg, kid: 'gateway-1' });
        const { iat = 0, exp = 0 } = payload;
        const jti = expect.stringMatching(/^[\w-]{22,}$/);
        expect(payload).toMatchObject({ iss: 'studio', sub: 'studio', aud: audience, jti });
        expect(iat).toBeGreaterThanOrEqual(before);
        expect(exp - iat).toBe(60);
        ids.add(payload.jti);
        for (const secret of secrets) expect(body).not.toContain(secret);
      }
      expect(ids.size).toBe(2);
    },
  );

  it('can be a PEM, which names no key, and names IDP_URL as the only audience, letter by letter', async () => {
    const { publicJwk, pem } = clientKeyPair('ES256');
    await using tokens = startWorld();
    tokens.upstream.on('POST /token?tenant=1', reply(400, { error: 'invalid_grant' }));
    const IDP_TOKEN_URL = `${tokens.upstream.identityProviderUrl}/token?tenant=1`;
    await using world = startWorld({
      IDP_CLIENT_KEY: pem,
      IDP_URL: 'https://IDP.test/tenant/',
      IDP_TOKEN_URL,
    });
    await expectRefused(await signIn(world), 400, 'signInRefused');
    const form = new URLSearchParams(tokens.upstream.last('POST /token?tenant=1').body);
    const assertion = form.get('client_assertion') ?? '';
    expect(decodeProtectedHeader(assertion)).toEqual({ alg: 'ES256' });
    const { payload } = await jwtVerify(assertion, await importJWK(publicJwk, 'ES256'));
    expect(payload.aud).toBe('https://IDP.test/tenant/');
  });
});

const { privateJwk, secrets } = clientKeyPair('ES256');

it.each<[what: string, environment: Environment, secrets: string[]]>([
  ['a secret', { IDP_CLIENT_SECRET: SECRET }, ['s3cr3t']],
  ['no secret', {}, []],
  ['a key', { IDP_CLIENT_KEY: privateJwk }, secrets],
])(
  'A provider that refuses a client with %s blames the registration, and the log has no secret',
  async (_, environment, hidden) => {
    const { response, log } = await exchange(environment, { error: 'invalid_client' });
    await expectRefused(response, 401, 'clientRefused');
    expect(response.headers.get('www-authenticate')).toBeNull();
    for (const secret of hidden) expect(log).not.toContain(secret);
  },
);
