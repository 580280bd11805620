/** The hash under which this process remembers a token: short, and useless to a reader of the memory. */

/** Secret, so that nobody can choose tokens with equal hashes. */
const KEY = crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n;

export function tokenHash(token: string): bigint {
  return Bun.hash.wyhash(token, KEY);
}
