/** Encrypts a token pair with the refresh token before it, so that only a holder of that token can read it. */

import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
// By subpath: the start would be slower with all of jose.
import { flattenedDecrypt } from 'jose/jwe/flattened/decrypt';
import { FlattenedEncrypt } from 'jose/jwe/flattened/encrypt';
import { Token } from '../upstream/token-pair.ts';

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** It is not protected, so the ciphertext is AES-GCM without associated data, as earlier versions read and write it. */
const HEADER = { alg: 'dir', enc: 'A256GCM' };

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
  return new Bun.CryptoHasher('sha256').update(refreshToken).digest('base64url');
}

/** @see RFC 5869 for the key, RFC 7516 and RFC 7518 section 5.3 for the encryption */
export async function encryptPair(pair: KeptPair, spentRefreshToken: string): Promise<string> {
  const jwe = await new FlattenedEncrypt(Buffer.from(JSON.stringify(pair)))
    .setSharedUnprotectedHeader(HEADER)
    .encrypt(keyFrom(spentRefreshToken));
  const parts = [jwe.iv ?? '', jwe.tag ?? '', jwe.ciphertext].map((part) => Buffer.from(part, 'base64url'));
  return Buffer.concat(parts).toString('base64url');
}

/** Undefined when the pair was sealed with another refresh token, or was modified. */
export async function decryptPair(sealed: string, spentRefreshToken: string): Promise<KeptPair | undefined> {
  const bytes = Buffer.from(sealed, 'base64url');
  const iv = bytes.toString('base64url', 0, IV_BYTES);
  const tag = bytes.toString('base64url', IV_BYTES, IV_BYTES + TAG_BYTES);
  const ciphertext = bytes.toString('base64url', IV_BYTES + TAG_BYTES);
  try {
    const jwe = { unprotected: HEADER, iv, tag, ciphertext };
    const { plaintext } = await flattenedDecrypt(jwe, keyFrom(spentRefreshToken));
    const contents: unknown = JSON.parse(Buffer.from(plaintext).toString());
    return Value.Check(Contents, contents) ? contents : undefined;
  } catch {
    return undefined;
  }
}

function keyFrom(refreshToken: string): Uint8Array {
  // Loaded at the first refresh, because node:crypto with its streams would slow down the start.
  const { hkdfSync } = process.getBuiltinModule('node:crypto');
  return new Uint8Array(
    hkdfSync('sha256', refreshToken, '', 'music-gateway: successor of a refresh token', 32),
  );
}
