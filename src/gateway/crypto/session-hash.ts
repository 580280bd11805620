/** The name of a session in the log, where neither its user nor its token may be. */

import { randomBytes } from 'node:crypto';

/** Made at the start and kept nowhere, so that nobody can compute later which token a line belongs to. */
const KEY = randomBytes(32);
/** 96 bits, so that no two sessions of a log have the same name. */
const LENGTH = 16;

/** @see RFC 2104 */
export function sessionHash(refreshToken: string): string {
  return new Bun.CryptoHasher('sha256', KEY).update(refreshToken).digest('base64url').slice(0, LENGTH);
}
