/** Imports the private key with which the gateway authenticates itself to the identity provider. */

import type { JWK } from 'jose';
import type { PrivateKey } from 'oauth4webapi';

/** Tried in this order; of a JWK that names its `alg`, only that one. */
const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'Ed25519', 'EdDSA', 'RS256', 'PS256'];

/** @see RFC 7518 section 3.3 */
const MIN_RSA_BITS = 2048;

const PROBLEM =
  `IDP_CLIENT_KEY must be a private key for ES256, ES384, ES512, Ed25519, RS256 or PS256 (RSA with ${MIN_RSA_BITS} bits ` +
  'or more): a JWK in JSON on one line, whose "alg", if it has one, is that of the key, or PKCS#8 in PEM';

/** @param text a private key as a JWK in JSON, or as PKCS#8 in PEM; see RFC 7517, RFC 7518 section 3.1, RFC 9864 */
export function clientKey(text: string) {
  let key: Promise<PrivateKey> | undefined;
  return {
    /** The key, which is imported once. @throws TypeError whose message says what the setting must be */
    imported(): Promise<PrivateKey> {
      key ??= importKey(text);
      return key;
    },
  };
}

async function importKey(text: string): Promise<PrivateKey> {
  try {
    const { importJWK, importPKCS8 } = await import('jose/key/import');
    const jwk: JWK | undefined = text.startsWith('{') ? JSON.parse(text) : undefined;
    for (const alg of ALGORITHMS.filter((each) => each === (jwk?.alg ?? each))) {
      const options = { extractable: false };
      const importing = jwk ? importJWK(jwk, alg, options) : importPKCS8(text, alg, options);
      const key = await importing.catch(() => undefined);
      if (key instanceof CryptoKey && canSign(key)) {
        return { key, ...(typeof jwk?.kid === 'string' && { kid: jwk.kid }) };
      }
    }
  } catch {
    // The error is no cause of the one below, because it may quote the key.
  }
  throw new TypeError(PROBLEM);
}

function canSign({ type, algorithm }: CryptoKey): boolean {
  const bits = 'modulusLength' in algorithm ? Number(algorithm.modulusLength) : MIN_RSA_BITS;
  return type === 'private' && bits >= MIN_RSA_BITS;
}
