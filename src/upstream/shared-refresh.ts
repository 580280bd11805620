/** Makes one refresh of the many that requests with the same refresh token ask for: a rotating one works only once. */

import type { RequestTrace } from '../http/request-trace.ts';
import type { Settings } from '../settings.ts';
import { openRenewed, recordOf, replayed } from './refresh-record.ts';
import { CLAIMED, ENDED, REJECTED, type ReplayStore, UNREACHABLE } from './replay-store.ts';
import { type KeptPair, refreshTokenHash } from './sealed-pair.ts';
import { type RefreshOutcome, refresh, signOut } from './session-endpoints.ts';
import type { TokenPair } from './token-pair.ts';

/** A claim is prolonged while its refresh runs, so this is how long a process that dies holds others up. */
const CLAIM_MS = 3000;
const POLL_MS = 40;

/**
 * A refresh belongs to no single request: it goes on when the client that began it has gone. For a while after it,
 * whoever comes with the spent token gets the newest pair of its chain, so that a late request or a lost answer
 * signs nobody out.
 */
export class SharedRefresh {
  readonly #settings: Settings;
  readonly #store: ReplayStore;
  readonly #underWay = new Map<string, Promise<RefreshOutcome>>();
  /** The keys of the tokens that this process is refreshing, whatever has become of its claims. */
  readonly #held = new Set<string>();
  readonly #claim = CLAIMED + crypto.randomUUID();

  constructor(settings: Settings, store: ReplayStore) {
    this.#settings = settings;
    this.#store = store;
  }

  /** The pair that follows this refresh token: by a refresh, or by one that was made before. */
  async refresh(refreshToken: string, trace: RequestTrace): Promise<RefreshOutcome> {
    const known = this.#underWay.get(refreshToken);
    if (known) {
      const outcome = await known;
      trace.refresh = outcome.kind === 'renewed' ? 'shared' : outcome.kind;
      return outcome;
    }
    const own = this.#claimOrFollow(refreshToken, trace).finally(() => this.#underWay.delete(refreshToken));
    this.#underWay.set(refreshToken, own);
    const outcome = await own;
    if (outcome.kind !== 'renewed') trace.refresh = outcome.kind;
    return outcome;
  }

  /** Resolves when no refresh is under way: one that is cut off has spent its token, and nobody has the new one. */
  async settled(): Promise<void> {
    while (this.#underWay.size) await Promise.allSettled(this.#underWay.values());
  }

  /** Forgets a sign-out, for a provider that gives the same refresh token at the next sign-in. */
  async begin(refreshToken: string): Promise<void> {
    await this.#store.replace(refreshTokenHash(refreshToken), ENDED, UNREACHABLE, 1);
  }

  /**
   * The newest pair that has come of this one, without a refresh; undefined when it was signed out. An answer that took
   * long must not bring an older pair back to the browser.
   */
  async newest(pair: TokenPair): Promise<TokenPair | undefined> {
    let newest = pair;
    for (const seen = new Set<string>(); !seen.has(newest.refreshToken); ) {
      seen.add(newest.refreshToken);
      const record = await this.#store.get(refreshTokenHash(newest.refreshToken));
      if (record === ENDED) return undefined;
      const successor = openRenewed(record, newest.refreshToken);
      if (!successor) break;
      newest = replayed(successor);
    }
    return newest;
  }

  /**
   * Ends the replay of this refresh token and of all that came of it, and discards a refresh that is under way.
   *
   * @returns the newest pair that had come of the token, which only the gateway knows
   */
  async end(refreshToken: string): Promise<TokenPair | undefined> {
    const lifetimeMs = CLAIM_MS + Math.max(this.#keepMs, this.#settings.timeouts.signInMs);
    let newest: KeptPair | undefined;
    for (let token = refreshToken; ; ) {
      const previous = await this.#store.put(refreshTokenHash(token), ENDED, lifetimeMs);
      const successor = openRenewed(previous, token);
      if (!successor) return newest && replayed(newest);
      newest = successor;
      token = successor.refreshToken;
    }
  }

  async #claimOrFollow(presented: string, trace: RequestTrace): Promise<RefreshOutcome> {
    const seen = new Set<string>();
    for (let token = presented; ; ) {
      const key = refreshTokenHash(token);
      const record = await this.#claimOrWait(token, key, trace);
      if (record === undefined) return this.#refreshAsHolder(token, key, trace);
      const successor = openRenewed(record, token);
      if (!successor) return failureOf(record);
      seen.add(token);
      const isNewest = seen.has(successor.refreshToken) || (await this.#isNewest(successor));
      if (isNewest) {
        trace.refresh ??= 'replayed';
        return { kind: 'renewed', pair: replayed(successor) };
      }
      token = successor.refreshToken;
    }
  }

  /** The outcome on record, waited for if need be; undefined when this process has the claim and is to refresh. */
  async #claimOrWait(token: string, key: string, trace: RequestTrace): Promise<string | undefined> {
    for (let hasWaited = false; ; hasWaited = true) {
      const record = this.#held.has(key) ? this.#claim : await this.#store.add(key, this.#claim, CLAIM_MS);
      if (record === undefined) return undefined;
      if (record.startsWith(CLAIMED)) {
        trace.refresh = 'shared';
        await Bun.sleep(POLL_MS);
      } else {
        if (hasWaited || !isOver(record, token)) return record;
        if (await this.#store.replace(key, record, this.#claim, CLAIM_MS)) return undefined;
      }
    }
  }

  /** Whether the successor has neither been spent in its turn nor outlived its access token. */
  async #isNewest({ refreshToken, expiresAt }: KeptPair): Promise<boolean> {
    if (expiresAt <= Date.now()) return false;
    return (await this.#store.get(refreshTokenHash(refreshToken))) === undefined;
  }

  async #refreshAsHolder(refreshToken: string, key: string, trace: RequestTrace): Promise<RefreshOutcome> {
    trace.refresh = 'renewed';
    this.#held.add(key);
    const prolong = setInterval(() => void this.#prolong(key), CLAIM_MS / 3);
    try {
      const outcome = await refresh(this.#settings, refreshToken, trace);
      return await this.#settle(outcome, refreshToken, key, trace);
    } finally {
      clearInterval(prolong);
      this.#held.delete(key);
    }
  }

  /** The claim is added again when the store has lost it. */
  async #prolong(key: string): Promise<void> {
    const isThere = await this.#store.replace(key, this.#claim, this.#claim, CLAIM_MS);
    if (!isThere && this.#held.has(key)) await this.#store.add(key, this.#claim, CLAIM_MS);
  }

  async #settle(
    outcome: RefreshOutcome,
    refreshToken: string,
    key: string,
    trace: RequestTrace,
  ): Promise<RefreshOutcome> {
    const record = recordOf(outcome, refreshToken, Math.max(this.#replayMs, this.#store.lingerMs));
    // An upstream that does not rotate has not spent the token: it may be refreshed again.
    const isSpent = outcome.kind === 'renewed' && outcome.pair.refreshToken !== refreshToken;
    const lifetimeMs = isSpent ? Math.max(this.#keepMs, this.#store.lingerMs) : this.#store.lingerMs;
    if (await this.#store.replace(key, this.#claim, record, lifetimeMs)) return outcome;

    // The claim is gone: the session was signed out, or the store lost the claim and another has refreshed as well.
    const found = await this.#store.add(key, record, lifetimeMs);
    if (found === ENDED) {
      // It was signed out meanwhile; the upstream hears of the late pair too, or not.
      if (outcome.kind === 'renewed') await signOut(this.#settings, outcome.pair, trace).catch(() => {});
      return { kind: 'rejected' };
    }
    const theirs = openRenewed(found, refreshToken);
    if (outcome.kind !== 'renewed') return theirs ? { kind: 'renewed', pair: replayed(theirs) } : outcome;
    if (found !== undefined && !theirs) await this.#store.replace(key, found, record, lifetimeMs);
    return outcome;
  }

  /** Longer than any answer under way, so that a late one finds out what has come of its pair. */
  get #keepMs(): number {
    return Math.max(this.#replayMs, this.#settings.timeouts.streamMs);
  }

  get #replayMs(): number {
    return this.#settings.refreshReplaySeconds * 1000;
  }
}

/** Whether the record is an outcome for those alone who have waited for it, or older than the replay window. */
function isOver(record: string, token: string): boolean {
  const successor = openRenewed(record, token);
  if (!successor) return record === UNREACHABLE;
  return successor.refreshToken === token || successor.replayUntil <= Date.now();
}

/** A record that does not open is no verdict of the upstream either. */
function failureOf(record: string): RefreshOutcome {
  if (record === REJECTED || record === ENDED) return { kind: 'rejected' };
  return { kind: 'unreachable', cause: new Error(UNREACHABLE) };
}
