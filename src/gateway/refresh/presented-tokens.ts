/** Notes which refresh tokens a client has presented, which ends the replay of the token before it. */

import { type KeptPair, refreshTokenHash } from './sealed-pair.ts';
import type { ReplayStore } from './store.ts';

/** Two sets of this size take about 40 bytes for each token: 2 MB. */
const MAX_RECENT = 25_000;
/** A request that the client sent before it had its new cookies arrives within this time. */
export const SENT_BEFORE_MS = 10_000;

/** Remembers recent tokens by hash, so that each is noted once and not at each request. */
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

/**
 * Whether a client certainly has the successor, so that the spent token can only come from a copy: the successor was
 * presented more than 10 s before this request, or was renewed after it had been presented.
 *
 * @param presentedAt when a client first presented the successor
 * @param next the pair that the successor was exchanged for
 * @see RFC 9700 section 4.14.2
 */
export function hasReplayEnded(
  arrivedAt: number,
  presentedAt: number | undefined,
  next: KeptPair | undefined,
): boolean {
  if (presentedAt === undefined) return false;
  return arrivedAt > presentedAt + SENT_BEFORE_MS || (next !== undefined && arrivedAt > next.renewedAt);
}
