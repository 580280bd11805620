/** Seals cookie values, so that a stolen cookie store or log contains no token that works at the upstream. */

import { decodeProtectedHeader } from 'jose/decode/protected_header';
import { seal, unseal } from '../crypto/seal.ts';

interface Key {
  readonly id: string;
  readonly bytes: Uint8Array;
}

/** Marks cookies that the gateway has sealed, to tell them from tokens that are JWEs themselves. */
const TYPE = 'music-gateway-cookie';

/**
 * The first key seals and every key opens. The protected header binds a value to its cookie's name and contains its
 * expiry, because only browsers obey `Max-Age`.
 */
export class CookieSeal {
  readonly #keys: readonly Key[];
  readonly #acceptPlain: boolean;

  constructor(keys: readonly Uint8Array[], acceptPlain: boolean) {
    this.#keys = keys.map((bytes) => ({ id: keyId(bytes), bytes }));
    this.#acceptPlain = acceptPlain;
  }

  async seal(cookieName: string, value: string, maxAgeSeconds: number): Promise<string> {
    const [key] = this.#keys;
    if (!key) throw new Error('a seal needs a key');
    const exp = nowSeconds() + maxAgeSeconds;
    return seal(value, key.bytes, { typ: TYPE, kid: key.id, cookie: cookieName, exp });
  }

  /** Undefined for a value that no listed key has sealed for this cookie, or that has expired. */
  async open(cookieName: string, value: string): Promise<string | undefined> {
    const { typ, kid, cookie, exp } = readHeader(value);
    if (typ !== TYPE) return this.#acceptPlain ? value : undefined;
    const key = this.#keys.find(({ id }) => id === kid);
    // The seal covers the header, so nobody can change or remove an `exp`.
    const isFresh = typeof exp === 'number' && exp > nowSeconds();
    if (!key || cookie !== cookieName || !isFresh) return undefined;
    return unseal(value, key.bytes);
  }
}

function readHeader(value: string): Record<string, unknown> {
  try {
    return decodeProtectedHeader(value);
  } catch {
    return {};
  }
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** Names a key without revealing anything about it. */
function keyId(key: Uint8Array): string {
  return new Bun.CryptoHasher('sha256').update('key id').update(key).digest('base64url').slice(0, 8);
}
