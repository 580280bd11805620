/** Seals texts with a key: compact JWEs with direct encryption by AES-256-GCM. */

// By subpath, because all of jose is a lot of code.
import { compactDecrypt } from 'jose/jwe/compact/decrypt';
import { CompactEncrypt } from 'jose/jwe/compact/encrypt';

const ALGORITHM = 'dir';
const ENCRYPTION = 'A256GCM';

/**
 * @param key 32 bytes
 * @param header readable by everybody, but nobody can change it without the key
 * @see RFC 7516 section 7.1 (compact serialization), RFC 7518 section 4.5 (`dir`) and 5.3 (AES-GCM)
 */
export function seal(
  text: string,
  key: Uint8Array,
  header: Readonly<Record<string, string | number>> = {},
): Promise<string> {
  return new CompactEncrypt(Buffer.from(text))
    .setProtectedHeader({ alg: ALGORITHM, enc: ENCRYPTION, ...header })
    .encrypt(key);
}

/** Undefined when the text was sealed with another key, or was modified. */
export async function unseal(sealed: string, key: Uint8Array): Promise<string | undefined> {
  const options = { keyManagementAlgorithms: [ALGORITHM], contentEncryptionAlgorithms: [ENCRYPTION] };
  try {
    const { plaintext } = await compactDecrypt(sealed, key, options);
    return Buffer.from(plaintext).toString();
  } catch {
    return undefined;
  }
}
