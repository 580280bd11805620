/** Makes one refresh of the many that requests with the same refresh token ask for: a rotating one works only once. */

import type { Settings } from '../settings.ts';
import { CLAIMED, ENDED, REJECTED, RENEWED, type ReplayStore, UNREACHABLE } from './replay-store.ts';
import { type KeptPair, keepPair, openPair, refreshTokenHash, sealPair } from './sealed-pair.ts';
import { type RefreshOutcome, refresh, signOut } from './session-endpoints.ts';
import type { TokenPair } from './token-pair.ts';

/** A claim is prolonged while its refresh runs, so this is how long a process that dies holds others up. */
const CLAIM_MS = 3000;
const POLL_MS = 40;
/** Far more refreshes than fit in a replay window; it only ends what would go round in circles. */
const LONGEST_CHAIN = 50;

/**
 * A refresh belongs to no single request: it goes on when the client that began it has gone. For a while after it,
 * whoever comes with the spent token gets the newest pair of its chain, so that a late request or a lost answer
 * signs nobody out.
 */
export class SharedRefresh {
  readonly #settings: Settings;
  readonly #store: ReplayStore;
  readonly #underWay = new Map<string, Promise<RefreshOutcome>>();
  readonly #claim = CLAIMED + crypto.randomUUID();

  constructor(settings: Settings, store: ReplayStore) {
    this.#settings = settings;
    this.#store = store;
  }

  /** The pair that follows this refresh token: by a refresh, or by one that was made before. */
  refresh(refreshToken: string): Promise<RefreshOutcome> {
    const known = this.#underWay.get(refreshToken);
    if (known) return known;
    const outcome = this.#claimOrFollow(refreshToken).finally(() => this.#underWay.delete(refreshToken));
    this.#underWay.set(refreshToken, outcome);
    return outcome;
  }

  /**
   * Ends the replay of this refresh token and of all that came of it, and discards a refresh that is under way.
   *
   * @returns the newest pair that had come of the token, which only the gateway knows
   */
  async end(refreshToken: string): Promise<TokenPair | undefined> {
    const lifetimeMs = CLAIM_MS + Math.max(this.#replayMs, this.#settings.timeouts.signInMs);
    let newest: KeptPair | undefined;
    for (let token = refreshToken; ; ) {
      const previous = await this.#store.put(refreshTokenHash(token), ENDED, lifetimeMs);
      const successor = openRenewed(previous, token);
      if (!successor) return newest && replayed(newest);
      newest = successor;
      token = successor.refreshToken;
    }
  }

  async #claimOrFollow(presented: string): Promise<RefreshOutcome> {
    for (let token = presented, hops = 0; ; ) {
      const key = refreshTokenHash(token);
      const record = await this.#store.add(key, this.#claim, CLAIM_MS);
      if (record === undefined) return this.#refreshAsHolder(token, key);
      const successor = openRenewed(record, token);
      if (successor) {
        const isNewest = hops++ === LONGEST_CHAIN || (await this.#isNewest(successor, token));
        if (isNewest) return { kind: 'renewed', pair: replayed(successor) };
        token = successor.refreshToken;
      } else if (record.startsWith(CLAIMED)) {
        await Bun.sleep(POLL_MS);
      } else if (record === REJECTED || record === ENDED) {
        return { kind: 'rejected' };
      } else {
        // Also a record that does not open: it is no verdict of the upstream.
        return { kind: 'unreachable', cause: new Error(UNREACHABLE) };
      }
    }
  }

  /** Whether the successor has neither been spent in its turn nor outlived its access token. */
  async #isNewest({ refreshToken, expiresAt }: KeptPair, spentRefreshToken: string): Promise<boolean> {
    if (refreshToken === spentRefreshToken) return true;
    if (expiresAt <= Date.now()) return false;
    return (await this.#store.get(refreshTokenHash(refreshToken))) === undefined;
  }

  async #refreshAsHolder(refreshToken: string, key: string): Promise<RefreshOutcome> {
    const prolong = setInterval(
      () => void this.#store.replace(key, this.#claim, this.#claim, CLAIM_MS),
      CLAIM_MS / 3,
    );
    const outcome = await refresh(this.#settings, refreshToken).finally(() => clearInterval(prolong));
    const record = this.#recordOf(outcome, refreshToken);
    const lifetimeMs = this.#lifetimeMs(outcome, refreshToken);
    if (await this.#store.replace(key, this.#claim, record, lifetimeMs)) return outcome;
    if ((await this.#store.add(key, record, lifetimeMs)) !== ENDED) return outcome;
    // Signed out meanwhile: what came of the refresh must not outlive that.
    if (outcome.kind === 'renewed') await this.#signOut(outcome.pair);
    return { kind: 'rejected' };
  }

  async #signOut({ accessToken, refreshToken }: TokenPair): Promise<void> {
    await signOut(this.#settings, accessToken, refreshToken).catch(() => {});
  }

  #recordOf(outcome: RefreshOutcome, refreshToken: string): string {
    switch (outcome.kind) {
      case 'renewed':
        return RENEWED + sealPair(keepPair(outcome.pair, Date.now()), refreshToken);
      case 'rejected':
        return REJECTED;
      case 'unreachable':
        return UNREACHABLE;
    }
  }

  #lifetimeMs(outcome: RefreshOutcome, refreshToken: string): number {
    // An upstream that does not rotate has not spent the token: it may be refreshed again.
    const isSpent = outcome.kind === 'renewed' && outcome.pair.refreshToken !== refreshToken;
    return isSpent ? Math.max(this.#replayMs, this.#store.lingerMs) : this.#store.lingerMs;
  }

  get #replayMs(): number {
    return this.#settings.refreshReplaySeconds * 1000;
  }
}

function openRenewed(record: string | undefined, refreshToken: string): KeptPair | undefined {
  return record?.startsWith(RENEWED) ? openPair(record.slice(RENEWED.length), refreshToken) : undefined;
}

/** The pair with what is left of its access token's life. */
function replayed({ accessToken, refreshToken, expiresAt }: KeptPair): TokenPair {
  return {
    accessToken,
    refreshToken,
    expiresInSeconds: Math.max(1, Math.floor((expiresAt - Date.now()) / 1000)),
  };
}
