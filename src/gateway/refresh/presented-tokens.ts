/** Notes which refresh tokens clients have presented: that ends the replay of the token before each of them. */

import { ISSUED, markKey, PRESENTED, type RefreshParts } from './facts.ts';

/** A set of this size takes about 40 bytes for each token: 2 MB. */
const MAX_NOTED = 50_000;

/** Remembers tokens by hash, so that each is noted once and not at each request. */
export class PresentedTokens {
  readonly #parts: RefreshParts;
  /** Secret, so that nobody can choose tokens with equal hashes. */
  readonly #hashKey = crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n;
  readonly #noted = new Set<number | bigint>();

  constructor(parts: RefreshParts) {
    this.#parts = parts;
  }

  /** A token that no refresh has issued gets no mark, because the replay of no other token depends on it. */
  note(refreshToken: string): void {
    const hash = Bun.hash.wyhash(refreshToken, this.#hashKey);
    if (this.#noted.has(hash)) return;
    if (this.#noted.size === MAX_NOTED) this.#noted.clear();
    this.#noted.add(hash);
    const { store, lifetimes } = this.#parts;
    void store.swap(markKey(refreshToken), ISSUED, PRESENTED, lifetimes.issuedMs);
  }
}
