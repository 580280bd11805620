/** Tells the replay store once, and not with each request, that a client has presented a refresh token. */

import type { ReplayStore } from './replay-store.ts';
import { refreshTokenHash } from './sealed-pair.ts';

/** About 40 bytes for each token, and twice as many tokens: 2 MB. */
const MOST_RECENT = 25_000;

/** Remembers the newest tokens by a hash; forgetting one only means that the store hears of it again. */
export class PresentedTokens {
  readonly #store: ReplayStore;
  #recent = new Set<number | bigint>();
  #before = new Set<number | bigint>();

  constructor(store: ReplayStore) {
    this.#store = store;
  }

  /** @param at when the request arrived, in milliseconds since the epoch */
  note(refreshToken: string, at: number): void {
    const hash = Bun.hash(refreshToken);
    if (this.#recent.has(hash)) return;
    if (!this.#before.has(hash)) void this.#store.markPresented(refreshTokenHash(refreshToken), at);
    this.#recent.add(hash);
    if (this.#recent.size < MOST_RECENT) return;
    this.#before = this.#recent;
    this.#recent = new Set();
  }
}
