/** The gateway as a confidential client. Before a certified identity provider: process/check-config. */

import { expect, it } from 'bun:test';
import { importJWK, jwtVerify } from 'jose';
import { clientKeyPair, SIGNING_ALGORITHMS } from '../../support/client-keys.ts';
import { reply, scriptSignIn, signIn, TOKEN } from '../../support/session-calls.ts';
import { startWorld } from '../../support/world.ts';

/** A public client sends these too, in this order. */
const FORM = ['grant_type', 'code', 'code_verifier', 'client_id', 'redirect_uri'];

it('IDP_CLIENT_SECRET is sent as client_secret_basic, form-encoded, and not in the body', async () => {
  const [clientId, secret] = ['a client: 100% & more', 's3cr3t: +%&=/~"\\'];
  await using world = startWorld({ IDP_CLIENT_ID: clientId, IDP_CLIENT_SECRET: secret });
  scriptSignIn(world);
  expect((await signIn(world)).status).toBe(200);
  const { headers, body } = world.upstream.last(TOKEN);
  const [scheme, credentials = ''] = headers.get('authorization')?.split(' ') ?? [];
  expect(scheme).toBe('Basic');
  const parts = Buffer.from(credentials, 'base64').toString().split(':');
  expect(parts.map((part) => new URLSearchParams(`x=${part}`).get('x'))).toEqual([clientId, secret]);
  expect([...new URLSearchParams(body).keys()]).toEqual(FORM);
});

it.each(SIGNING_ALGORITHMS)(
  'IDP_CLIENT_KEY signs assertions with %s, each for once and for IDP_URL alone',
  async (alg) => {
    const { publicJwk, privateJwk, secrets } = clientKeyPair(alg);
    await using provider = startWorld();
    provider.upstream.on('POST /token?tenant=1', reply(400, { error: 'invalid_grant' }));
    const IDP_TOKEN_URL = `${provider.upstream.identityProviderUrl}/token?tenant=1`;
    // The audience is compared letter by letter.
    const IDP_URL = 'https://IDP.test/tenant/';
    await using world = startWorld({ IDP_CLIENT_KEY: privateJwk, IDP_URL, IDP_TOKEN_URL });
    const before = Math.floor(Date.now() / 1000);
    for (const _ of [1, 2]) expect((await signIn(world)).status).toBe(400);
    const ids = provider.upstream.received.map(async ({ headers, body }) => {
      expect(headers.get('authorization')).toBeNull();
      const form = new URLSearchParams(body);
      expect([...form.keys()]).toEqual([...FORM, 'client_assertion_type', 'client_assertion']);
      const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
      expect(form.get('client_assertion_type')).toBe(type);
      const key = await importJWK(publicJwk, alg);
      const assertion = form.get('client_assertion') ?? '';
      const { payload, protectedHeader } = await jwtVerify(assertion, key, { algorithms: [alg] });
      expect(protectedHeader).toMatchObject({ alg, kid: 'gateway-1' });
      const { iat = 0, jti } = payload;
      const once = { exp: iat + 60, jti: expect.stringMatching(/^[\w-]{22,}$/) };
      expect(payload).toMatchObject({ iss: 'studio', sub: 'studio', aud: IDP_URL, ...once });
      expect(iat).toBeGreaterThanOrEqual(before);
      for (const secret of secrets) expect(body).not.toContain(secret);
      return jti;
    });
    expect(new Set(await Promise.all(ids)).size).toBe(2);
  },
);
