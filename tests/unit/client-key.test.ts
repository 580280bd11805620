import { describe, expect, it } from 'bun:test';
import { generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import { inspect } from 'node:util';
import { clientKey } from '../../src/gateway/settings/client-key.ts';
import { loadSettings, parseSettings } from '../../src/gateway/settings/settings.ts';
import { clientKeyPair, SIGNING_ALGORITHMS } from '../support/client-keys.ts';

const REQUIRED = {
  NODE_ENV: 'production',
  UPSTREAM_URL: 'https://upstream.test',
  IDP_URL: 'https://idp.test',
  IDP_CLIENT_ID: 'studio',
  IDP_REDIRECT_URI: 'https://studio.test/callback',
  ALLOWED_ORIGINS: 'https://studio.test',
};
const PAIR = clientKeyPair('ES256');
const PROBLEM =
  'IDP_CLIENT_KEY must be a private key for ES256, ES384, ES512, Ed25519, RS256 or PS256 (RSA with 2048 bits or ' +
  'more): a JWK in JSON on one line, whose "alg", if it has one, is that of the key, or PKCS#8 in PEM';

const jwkWith = (change: object, jwk = PAIR.privateJwk) => JSON.stringify({ ...JSON.parse(jwk), ...change });
const pemOf = (key: KeyObject) => String(key.export({ type: 'pkcs8', format: 'pem' }));
const algorithmOf = async (text: string) => Object((await clientKey(text).imported()).key.algorithm);

describe('clientKey()', () => {
  it.each(SIGNING_ALGORITHMS)('reads a JWK or a PEM for %s, and shows neither', async (alg) => {
    const { privateJwk, pem, secrets } = clientKeyPair(alg, 'a kid');
    const outcomes = await Promise.all(
      [privateJwk, pem].map((text) => loadSettings({ ...REQUIRED, IDP_CLIENT_KEY: text })),
    );
    expect(outcomes).toMatchObject([{ ok: true }, { ok: true }]);
    const [fromJwk, fromPem] = [await clientKey(privateJwk).imported(), await clientKey(pem).imported()];
    expect([fromJwk.kid, fromPem.kid]).toEqual(['a kid', undefined]);
    expect([fromJwk.key.extractable, fromPem.key.extractable]).toEqual([false, false]);
    const shown = inspect([fromJwk, fromPem, outcomes], { depth: 9 }) + JSON.stringify(outcomes);
    for (const secret of [...secrets, pem]) expect(shown).not.toContain(secret);
    // Nothing in a PEM, or in a JWK without `alg`, asks for PS256. An environment file may have lost the line ends.
    const expected = await algorithmOf(alg === 'PS256' ? clientKeyPair('RS256').privateJwk : privateJwk);
    for (const text of [pem, pem.replaceAll('\n', ' '), jwkWith({ alg: undefined }, privateJwk)]) {
      expect(await algorithmOf(text)).toEqual(expected);
    }
  });

  it.each([
    ['ES256', { name: 'ECDSA', namedCurve: 'P-256' }],
    ['ES384', { name: 'ECDSA', namedCurve: 'P-384' }],
    ['ES512', { name: 'ECDSA', namedCurve: 'P-521' }],
    ['RS256', { name: 'RSASSA-PKCS1-v1_5', hash: { name: 'SHA-256' } }],
    ['PS256', { name: 'RSA-PSS', hash: { name: 'SHA-256' } }],
    ['Ed25519', { name: 'Ed25519' }],
  ] as const)('signs with %s when the JWK says so', async (alg, algorithm) => {
    expect(await algorithmOf(clientKeyPair(alg).privateJwk)).toMatchObject(algorithm);
  });

  it('takes an Ed25519 JWK under its older name, EdDSA', async () => {
    const jwk = jwkWith({ alg: 'EdDSA' }, clientKeyPair('Ed25519').privateJwk);
    expect(await algorithmOf(jwk)).toEqual({ name: 'Ed25519' });
  });

  it('imports a key once, and no other than the one that is set', async () => {
    const read = clientKey(PAIR.privateJwk);
    const { key } = await read.imported();
    expect((await read.imported()).key).toBe(key);
    const data = Buffer.from('an assertion');
    const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key, data);
    const publicKey = { key: PAIR.publicJwk, format: 'jwk', dsaEncoding: 'ieee-p1363' } as const;
    expect(verify('sha256', data, publicKey, Buffer.from(signature))).toBe(true);
  });

  const shortKey = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  it.each([
    ['that is no key at all', 'secret'],
    ['that is cut off', PAIR.pem.slice(0, -40)],
    ['of broken JSON', PAIR.privateJwk.slice(0, -1)],
    ['that is public', JSON.stringify(PAIR.publicJwk)],
    ['that is symmetric', '{"kty":"oct","k":"secret"}'],
    ['that is symmetric and claims not to be', '{"kty":"oct","k":"secret","alg":"ES256"}'],
    ['of another algorithm', jwkWith({ alg: 'RS256' })],
    ['of an algorithm for another curve', jwkWith({ alg: 'ES384' })],
    ['of an unknown algorithm', jwkWith({ alg: 'toString' })],
    ['whose algorithm is no text', jwkWith({ alg: 256 })],
    ['that must not sign', jwkWith({ key_ops: ['verify'] })],
    ['that is too short', pemOf(shortKey)],
    ['that is too short as a JWK', JSON.stringify(shortKey.export({ format: 'jwk' }))],
    ['for key agreement', pemOf(generateKeyPairSync('x25519').privateKey)],
  ])('refuses one %s without quoting it', async (_, value) => {
    expect(await loadSettings({ ...REQUIRED, IDP_CLIENT_KEY: value })).toEqual({
      ok: false,
      problems: [PROBLEM],
      warnings: [],
    });
  });
});

describe('an IDP_CLIENT_KEY', () => {
  it('is refused together with an IDP_CLIENT_SECRET', () => {
    const both = { ...REQUIRED, IDP_CLIENT_SECRET: 'secret', IDP_CLIENT_KEY: PAIR.privateJwk };
    const problems = ['IDP_CLIENT_SECRET and IDP_CLIENT_KEY must not both be set'];
    expect(parseSettings(both)).toMatchObject({ ok: false, problems });
  });

  it('that is wrong is reported together with every other problem', async () => {
    const outcome = await loadSettings({
      ...REQUIRED,
      IDP_CLIENT_KEY: '{}',
      PORT: 'x',
      METRICS_PORT: '4175',
    });
    const problems = [expect.stringMatching(/^PORT /), PROBLEM, expect.stringMatching(/^METRICS_PORT /)];
    expect(outcome).toMatchObject({ ok: false, problems });
  });
});
