/** Encrypts a token pair with the refresh token before it, so that only a holder of that token can read it. */

import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { Token } from '../upstream/token-pair.ts';

const IV_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

/** Times are in milliseconds since the epoch: when the access token expires, and when the refresh was made. */
const Contents = Type.Object({
  accessToken: Token,
  refreshToken: Token,
  expiresAt: Type.Number(),
  renewedAt: Type.Number(),
});

export type KeptPair = Static<typeof Contents>;

/** The key under which a store keeps a refresh token's record. It reveals nothing about the token. */
export function refreshTokenHash(refreshToken: string): string {
  return createHash('sha256').update(refreshToken).digest('base64url');
}

/** @see RFC 5869 for the key, NIST SP 800-38D for AES-GCM */
export function encryptPair(pair: KeptPair, spentRefreshToken: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, keyFrom(spentRefreshToken), iv);
  const text = Buffer.concat([cipher.update(JSON.stringify(pair), 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url');
}

/** Undefined when the pair was sealed with another refresh token, or was modified. */
export function decryptPair(sealed: string, spentRefreshToken: string): KeptPair | undefined {
  const bytes = Buffer.from(sealed, 'base64url');
  try {
    const decipher = createDecipheriv(CIPHER, keyFrom(spentRefreshToken), bytes.subarray(0, IV_BYTES));
    decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    const text =
      decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    const contents: unknown = JSON.parse(text);
    return Value.Check(Contents, contents) ? contents : undefined;
  } catch {
    return undefined;
  }
}

function keyFrom(refreshToken: string): Uint8Array {
  return new Uint8Array(
    hkdfSync('sha256', refreshToken, '', 'music-gateway: successor of a refresh token', 32),
  );
}
