/**
 * What RFC 10017 asks of a backend for frontend beyond the contract: the gateway as a confidential client, and one in
 * production with all settings that harden it. Each in all its cases: SECURITY.md. Before a certified identity provider:
 * process/check-config.
 *
 * @see RFC 10017 section 6.1.3
 */

import { expect, it } from 'bun:test';
import { decodeProtectedHeader, importJWK, jwtVerify } from 'jose';
import { clientKeyPair, SIGNING_ALGORITHMS } from '../../support/client-keys.ts';
import { readDocument, section } from '../../support/documents.ts';
import * as calls from '../../support/session-calls.ts';
import { SIGNED_IN, startWorld } from '../../support/world.ts';

const { checkSession, LOGOUT, reply, scriptSignIn, sentBack, signIn, signOut, TOKEN } = calls;
const PREFIX = '__Host-Http-';
const NAMES = [`${PREFIX}svc_music_access`, `${PREFIX}svc_music_refresh`];
const SECRETS = new Map([
  ['COOKIE_KEYS', Buffer.alloc(32, 7).toString('base64url')],
  ['IDP_CLIENT_KEY', (await clientKeyPair('ES256')).privateJwk],
]);
/** As the operating page has it, with keys where it has none. */
const PAGE = section(await readDocument('deploy/README.md'), '### The hardened set');
const SETTINGS = Array.from(PAGE.matchAll(/^([A-Z_]+)=(.*)$/gm), ([, name = '', value = '']) => [
  name,
  SECRETS.get(name) ?? value,
]);

/** The cookies without their values; the contract has their lifetimes. */
function attributes(response: Response): string[] {
  const lines = response.headers.getSetCookie();
  return lines.map((line) => line.replace(/=[^;]*/, '').replace(/Max-Age=\d+/, 'Max-Age'));
}

it('the gateway authenticates with its key, and encrypts cookies that have all attributes and a prefix', async () => {
  await using world = startWorld(Object.fromEntries(SETTINGS));
  scriptSignIn(world);
  world.upstream.on(LOGOUT, reply(204));
  const signedIn = await signIn(world);
  const form = new URLSearchParams(world.upstream.last(TOKEN).body);
  expect(decodeProtectedHeader(form.get('client_assertion') ?? '')).toMatchObject({ alg: 'ES256' });
  const hardened = NAMES.map((name) => `${name}; Path=/; Max-Age; Secure; HttpOnly; SameSite=Strict`);
  expect(attributes(signedIn)).toEqual(hardened);
  for (const line of signedIn.headers.getSetCookie())
    expect(decodeProtectedHeader(Bun.Cookie.parse(line).value)).toMatchObject({ enc: 'A256GCM' });

  const cookie = sentBack(signedIn);
  world.upstream.received.length = 0;
  // Neither a token nor another name is a session.
  for (const each of [SIGNED_IN.replaceAll('svc', `${PREFIX}svc`), cookie.replaceAll(PREFIX, '')])
    expect(await (await checkSession(world, each)).json()).toEqual({ authenticated: false });
  const ended = await signOut(world, cookie);
  expect(world.upstream.calls).toEqual([LOGOUT]);
  expect(world.upstream.last(LOGOUT).headers.get('authorization')).toBe('Bearer access-1');
  expect([attributes(ended), sentBack(ended)]).toEqual([
    hardened,
    NAMES.map((name) => `${name}=`).join('; '),
  ]);
});

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
    const { publicJwk, privateJwk, secrets } = await clientKeyPair(alg);
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
