/** The gateway as a confidential client. Before a certified identity provider: hardened.test.ts and check-config. */

import { describe, expect, it } from 'bun:test';
import { decodeProtectedHeader, importJWK, jwtVerify } from 'jose';
import { clientKeyPair, SIGNING_ALGORITHMS } from '../../support/client-keys.ts';
import { reply, scriptSignIn, signIn, TOKEN } from '../../support/session-calls.ts';
import { startWorld, type World } from '../../support/world.ts';

/** A public client sends these too, in this order. */
const FORM = ['grant_type', 'code', 'code_verifier', 'client_id', 'redirect_uri'];

/** Signs in, and returns what the token endpoint received. */
async function exchange(world: World) {
  expect((await signIn(world)).status).toBe(200);
  const { headers, body } = world.upstream.last(TOKEN);
  const form = new URLSearchParams(body);
  return {
    authorization: headers.get('authorization'),
    body,
    form,
    assertion: form.get('client_assertion') ?? '',
  };
}

it('IDP_CLIENT_SECRET is sent as client_secret_basic, form-encoded, and not in the body', async () => {
  const [clientId, secret] = ['a client: 100% & more', 's3cr3t: +%&=/~"\\'];
  await using world = startWorld({ IDP_CLIENT_ID: clientId, IDP_CLIENT_SECRET: secret });
  scriptSignIn(world);
  const { authorization, form } = await exchange(world);
  const [scheme, credentials = ''] = authorization?.split(' ') ?? [];
  expect(scheme).toBe('Basic');
  const parts = Buffer.from(credentials, 'base64').toString().split(':');
  expect(parts.map((part) => new URLSearchParams(`x=${part}`).get('x'))).toEqual([clientId, secret]);
  expect([...form.keys()]).toEqual(FORM);
});

describe('IDP_CLIENT_KEY', () => {
  it.each(SIGNING_ALGORITHMS)(
    'signs assertions with %s that its public key verifies, each once',
    async (alg) => {
      const { publicJwk, privateJwk, secrets } = clientKeyPair(alg);
      await using world = startWorld({ IDP_CLIENT_KEY: privateJwk });
      scriptSignIn(world);
      const before = Math.floor(Date.now() / 1000);
      const sent = [await exchange(world), await exchange(world)];
      const ids = sent.map(async ({ authorization, body, form, assertion }) => {
        expect(authorization).toBeNull();
        expect([...form.keys()]).toEqual([...FORM, 'client_assertion_type', 'client_assertion']);
        const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
        expect(form.get('client_assertion_type')).toBe(type);
        const key = await importJWK(publicJwk, alg);
        const { payload, protectedHeader } = await jwtVerify(assertion, key, { algorithms: [alg] });
        expect(protectedHeader).toMatchObject({ alg, kid: 'gateway-1' });
        const { iat = 0, exp = 0, jti } = payload;
        const aud = world.upstream.identityProviderUrl;
        expect(payload).toMatchObject({ iss: 'studio', sub: 'studio', aud });
        expect(jti).toMatch(/^[\w-]{22,}$/);
        expect(iat).toBeGreaterThanOrEqual(before);
        expect(exp - iat).toBe(60);
        for (const secret of secrets) expect(body).not.toContain(secret);
        return jti;
      });
      expect(new Set(await Promise.all(ids)).size).toBe(2);
    },
  );

  it('can be a PEM, which names no key, and names IDP_URL as the only audience, letter by letter', async () => {
    const { publicJwk, pem } = clientKeyPair('ES256');
    await using tokens = startWorld();
    const call = 'POST /token?tenant=1';
    tokens.upstream.on(call, reply(400, { error: 'invalid_grant' }));
    const IDP_TOKEN_URL = `${tokens.upstream.identityProviderUrl}/token?tenant=1`;
    const IDP_URL = 'https://IDP.test/tenant/';
    await using world = startWorld({ IDP_CLIENT_KEY: pem, IDP_URL, IDP_TOKEN_URL });
    expect((await signIn(world)).status).toBe(400);
    const form = new URLSearchParams(tokens.upstream.last(call).body);
    const assertion = form.get('client_assertion') ?? '';
    expect(decodeProtectedHeader(assertion)).toEqual({ alg: 'ES256' });
    const { payload } = await jwtVerify(assertion, await importJWK(publicJwk, 'ES256'));
    expect(payload.aud).toBe(IDP_URL);
  });
});
