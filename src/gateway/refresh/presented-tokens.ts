/** Notes which refresh tokens clients have presented, because that ends the replay of the tokens before them. */

import { tokenHash } from '../crypto/token-hash.ts';
import { ISSUED, markKey, PRESENTED, type RefreshParts } from './facts.ts';
import type { Fact } from './store.ts';

/** Bounds the set to 2 MB, at 40 bytes a token, because strangers can make tokens up. */
const MAX_NOTED = 50_000;

/** Remembers tokens by hash, so that each is noted once and not at each request. */
export class PresentedTokens {
  readonly #parts: Omit<RefreshParts, 'upstream'>;
  readonly #noted = new Set<bigint>();

  constructor(parts: Omit<RefreshParts, 'upstream'>) {
    this.#parts = parts;
  }

  /** A token that no refresh has issued gets no mark, because the replay of no other token depends on it. */
  note(refreshToken: string): void {
    const hash = tokenHash(refreshToken);
    if (this.#noted.has(hash)) return;
    if (this.#noted.size === MAX_NOTED) this.#noted.clear();
    this.#noted.add(hash);
    void this.#mark(refreshToken, hash);
  }

  /** Separate from `note`, which every request calls: a closure there would cost each of them two objects. */
  async #mark(refreshToken: string, hash: bigint): Promise<void> {
    const { store, lifetimes } = this.#parts;
    const { isAlone } = await store.swap(markKey(refreshToken), ISSUED, PRESENTED, lifetimes.issuedMs);
    // The mark may be another instance's, so the next request of the token tries again.
    if (isAlone) this.#noted.delete(hash);
  }

  /** Marks a token as just issued, if its mark is `from`, for as long as a response may bring it to a browser. */
  async issue(refreshToken: string, from?: Fact): Promise<void> {
    const { store, lifetimes } = this.#parts;
    await store.swap(markKey(refreshToken), from, ISSUED, lifetimes.issuedMs);
  }

  /** Repeats that while a response is on its way. Returns a function that ends it. */
  expect(refreshToken: string): () => void {
    const { clock, lifetimes } = this.#parts;
    if (lifetimes.replayMs === 0) return () => {};
    return clock.every(lifetimes.replayMs / 2, () => void this.issue(refreshToken, ISSUED));
  }
}
