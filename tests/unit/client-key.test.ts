import { expect, it } from 'bun:test';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { inspect } from 'node:util';
import { clientKey } from '../../src/gateway/settings/client-key.ts';
import { loadSettings } from '../../src/gateway/settings/settings.ts';
import { clientKeyPair, SIGNING_ALGORITHMS } from '../support/client-keys.ts';
import { REQUIRED } from '../support/world.ts';

const PAIR = await clientKeyPair('ES256');
const PROBLEM =
  'IDP_CLIENT_KEY must be a private key for ES256, ES384, ES512, Ed25519, RS256 or PS256 (RSA with 2048 bits or ' +
  'more): a JWK in JSON on one line, whose "alg", if it has one, is that of the key, or PKCS#8 in PEM';

const jwkWith = (change: object, jwk = PAIR.privateJwk) => JSON.stringify({ ...JSON.parse(jwk), ...change });
const pemOf = (key: KeyObject) => String(key.export({ type: 'pkcs8', format: 'pem' }));
const algorithmOf = async (text: string) => Object((await clientKey(text).imported()).key.algorithm);

// Which algorithm a JWK signs with, and that its kid is sent: integration/session/hardened.test.ts.
it.each(SIGNING_ALGORITHMS)('IDP_CLIENT_KEY can be JWK or PEM for %s, and is shown nowhere', async (alg) => {
  const { privateJwk, pem, secrets } = await clientKeyPair(alg);
  const given = [privateJwk, pem];
  const outcomes = await Promise.all(
    given.map((text) => loadSettings({ ...REQUIRED, IDP_CLIENT_KEY: text })),
  );
  expect(outcomes).toMatchObject([{ ok: true }, { ok: true }]);
  const keys = await Promise.all(given.map((text) => clientKey(text).imported()));
  expect(keys.map(({ key }) => key.extractable)).toEqual([false, false]);
  const shown = inspect([keys, outcomes], { depth: 9 }) + JSON.stringify(outcomes);
  for (const secret of secrets) expect(shown).not.toContain(secret);
  // Nothing in a PEM, or in a JWK without `alg`, asks for PS256. An environment file may have lost the line ends.
  const { privateJwk: named } = await clientKeyPair(alg === 'PS256' ? 'RS256' : alg);
  const expected = await algorithmOf(named);
  for (const text of [pem, pem.replaceAll('\n', ' '), jwkWith({ alg: undefined }, privateJwk)])
    expect(await algorithmOf(text)).toEqual(expected);
});

it('IDP_CLIENT_KEY can be an Ed25519 JWK under its older name, EdDSA', async () => {
  const jwk = jwkWith({ alg: 'EdDSA' }, (await clientKeyPair('Ed25519')).privateJwk);
  expect(await algorithmOf(jwk)).toEqual({ name: 'Ed25519' });
});

it.each([
  ['is no key at all', 'secret'],
  ['is cut off', PAIR.pem.slice(0, -40)],
  ['is public', JSON.stringify(PAIR.publicJwk)],
  ['is symmetric and claims not to be', '{"kty":"oct","k":"secret","alg":"ES256"}'],
  ['has an algorithm for another curve', jwkWith({ alg: 'ES384' })],
  ['has an unknown algorithm', jwkWith({ alg: 'toString' })],
  ['must not sign', jwkWith({ key_ops: ['verify'] })],
  ['is too short', pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey)],
  ['is for key agreement', pemOf(generateKeyPairSync('x25519').privateKey)],
])('IDP_CLIENT_KEY is refused without being quoted when it %s', async (_, IDP_CLIENT_KEY) => {
  const outcome = await loadSettings({ ...REQUIRED, IDP_CLIENT_KEY });
  expect(outcome).toEqual({ ok: false, problems: [PROBLEM], warnings: [] });
});
