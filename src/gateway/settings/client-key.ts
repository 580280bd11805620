/** Reads the private key with which the gateway authenticates itself to the identity provider. */

import type { KeyObject, webcrypto } from 'node:crypto';

export interface ClientKey {
  readonly privateKey: KeyObject;
  /** The parameters for Web Crypto. */
  readonly parameters: SigningParameters;
  /** The key id of a JWK; a PEM has none. */
  readonly kid: string | undefined;
}

interface SigningParameters {
  readonly name: string;
  readonly namedCurve?: string;
  readonly hash?: string;
}

/** Chosen by the key's curve or type, and by the JWK's `alg`. Without an `alg`, the first match is used. */
const ALGORITHMS: readonly { kind: string; alg: string; parameters: SigningParameters }[] = [
  { kind: 'P-256', alg: 'ES256', parameters: { name: 'ECDSA', namedCurve: 'P-256' } },
  { kind: 'P-384', alg: 'ES384', parameters: { name: 'ECDSA', namedCurve: 'P-384' } },
  { kind: 'P-521', alg: 'ES512', parameters: { name: 'ECDSA', namedCurve: 'P-521' } },
  { kind: 'Ed25519', alg: 'Ed25519', parameters: { name: 'Ed25519' } },
  { kind: 'Ed25519', alg: 'EdDSA', parameters: { name: 'Ed25519' } },
  { kind: 'RSA', alg: 'RS256', parameters: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } },
  { kind: 'RSA', alg: 'PS256', parameters: { name: 'RSA-PSS', hash: 'SHA-256' } },
];

/** @see RFC 7518 section 3.3 */
const MIN_RSA_BITS = 2048;

/**
 * @param text a private key as a JWK in JSON, or in PEM
 * @returns undefined after adding a problem, whose text quotes nothing of the key
 * @see RFC 7517, RFC 7518 section 3.1, RFC 9864 section 2.2
 */
export function parseClientKey(text: string, problems: string[]): ClientKey | undefined {
  const parsed = parsePrivateKey(text);
  if (!parsed) {
    problems.push('IDP_CLIENT_KEY must be a private key: a JWK in JSON on one line, or PKCS#8 in PEM');
    return undefined;
  }
  const { privateKey, kind, alg, kid } = parsed;
  const algorithm = ALGORITHMS.find((each) => each.kind === kind && (alg === undefined || each.alg === alg));
  const bits = privateKey.asymmetricKeyDetails?.modulusLength ?? MIN_RSA_BITS;
  if (!algorithm || bits < MIN_RSA_BITS) {
    problems.push(
      'IDP_CLIENT_KEY must be a key for ES256, ES384, ES512, Ed25519, RS256 or PS256 ' +
        `(RSA with ${MIN_RSA_BITS} bits or more), and its "alg", if it has one, must be that of the key`,
    );
    return undefined;
  }
  return { privateKey, parameters: algorithm.parameters, kid: typeof kid === 'string' ? kid : undefined };
}

function parsePrivateKey(text: string) {
  try {
    const jwk: webcrypto.JsonWebKey & { kid?: unknown } = text.startsWith('{') ? JSON.parse(text) : {};
    // Loaded only for a key, because it would slow down every start.
    const { createPrivateKey } = process.getBuiltinModule('node:crypto');
    const privateKey = createPrivateKey(text.startsWith('{') ? { key: jwk, format: 'jwk' } : text);
    const { crv, kty } = privateKey.export({ format: 'jwk' });
    return { privateKey, kind: crv ?? kty, alg: jwk.alg, kid: jwk.kid };
  } catch {
    // The error is not reported, because it may quote the key.
    return undefined;
  }
}
