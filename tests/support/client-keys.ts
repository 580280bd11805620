/** Key pairs with which a confidential client signs its assertions. */

import { generateKeyPairSync, type KeyObject } from 'node:crypto';

export const SIGNING_ALGORITHMS = ['ES256', 'ES384', 'ES512', 'Ed25519', 'RS256', 'PS256'] as const;
type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

const GENERATORS: Record<SigningAlgorithm, () => { publicKey: KeyObject; privateKey: KeyObject }> = {
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  ES512: () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  Ed25519: () => generateKeyPairSync('ed25519'),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
};

export function clientKeyPair(alg: SigningAlgorithm, kid = 'gateway-1') {
  const { publicKey, privateKey } = GENERATORS[alg]();
  return {
    /** As providers register it. */
    publicJwk: { ...publicKey.export({ format: 'jwk' }), alg, kid, use: 'sig' },
    /** As settings have it, on one line. */
    privateJwk: JSON.stringify({ ...privateKey.export({ format: 'jwk' }), alg, kid }),
    pem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    /** Base64url texts of the private key alone: no output may contain one. */
    secrets: Object.entries(privateKey.export({ format: 'jwk' })).flatMap(([name, value]) =>
      ['d', 'p', 'q', 'dp', 'dq', 'qi'].includes(name) ? [String(value)] : [],
    ),
  };
}
