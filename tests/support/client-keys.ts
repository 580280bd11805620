/** Key pairs with which a confidential client signs its assertions. */

import { exportJWK, exportPKCS8, generateKeyPair } from 'jose';

export const SIGNING_ALGORITHMS = ['ES256', 'ES384', 'ES512', 'Ed25519', 'RS256', 'PS256'];

export async function clientKeyPair(alg: string, kid = 'gateway-1') {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), alg, kid };
  const { d, p, q, dp, dq, qi } = jwk;
  const pem = await exportPKCS8(privateKey);
  return {
    /** As providers register it. */
    publicJwk: { ...(await exportJWK(publicKey)), alg, kid, use: 'sig' },
    /** As settings have it, on one line. */
    privateJwk: JSON.stringify(jwk),
    pem,
    /** The private key's own texts in the JWK, and the whole lines of the PEM: no output may contain one. */
    secrets: [d, p, q, dp, dq, qi, ...(pem.match(/^.{64}$/gm) ?? [])].filter((text) => text !== undefined),
  };
}
