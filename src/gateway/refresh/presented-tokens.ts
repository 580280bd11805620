/** Notes in the replay store that a client has presented a refresh token: once, not at each request. */

import { refreshTokenHash } from './sealed-pair.ts';
import type { ReplayStore } from './store.ts';

/** Two sets of this size take about 40 bytes for each token: 2 MB. */
const MAX_RECENT = 25_000;

/** Remembers recent tokens by hash. A forgotten token is only noted again. */
export class PresentedTokens {
  readonly #store: ReplayStore;
  /** Secret, so that nobody can choose tokens with equal hashes. */
  readonly #hashKey = crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n;
  #recent = new Set<number | bigint>();
  #before = new Set<number | bigint>();

  constructor(store: ReplayStore) {
    this.#store = store;
  }

  /** @param at when the request arrived, in milliseconds since the epoch */
  note(refreshToken: string, at: number): void {
    const hash = Bun.hash.wyhash(refreshToken, this.#hashKey);
    if (this.#recent.has(hash)) return;
    if (!this.#before.has(hash)) void this.#store.markPresented(refreshTokenHash(refreshToken), at);
    this.#recent.add(hash);
    if (this.#recent.size < MAX_RECENT) return;
    this.#before = this.#recent;
    this.#recent = new Set();
  }
}
