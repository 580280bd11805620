/** Follows the chain of successors from a refresh token to the newest one. */

import { decryptSuccessor } from './record.ts';
import { type KeptPair, refreshTokenHash } from './sealed-pair.ts';
import type { ReplayStore } from './store.ts';

interface ChainEnd {
  /** The record of the newest refresh token. */
  readonly record: string | undefined;
  /** Undefined when the token has no successor. */
  readonly successor: KeptPair | undefined;
}

export async function endOfChain(store: ReplayStore, refreshToken: string): Promise<ChainEnd> {
  const seen = new Set<string>();
  let successor: KeptPair | undefined;
  for (let token = refreshToken; ; ) {
    seen.add(token);
    const record = await store.get(refreshTokenHash(token));
    const next = decryptSuccessor(record, token);
    if (!next || seen.has(next.refreshToken)) return { record, successor: next ?? successor };
    successor = next;
    token = next.refreshToken;
  }
}
