/** Makes one refresh of the many that requests with the same refresh token ask for: a rotating one works only once. */

import type { RequestTrace } from '../http/request-trace.ts';
import type { Settings } from '../settings.ts';
import { CLAIM_MS, type RecordLifetimes, recordLifetimes } from './record-lifetimes.ts';
import { failureOf, isOver, openRenewed, recordOf, replayed } from './refresh-record.ts';
import { CLAIMED, ENDED, type ReplayStore, UNREACHABLE } from './replay-store.ts';
import { type KeptPair, refreshTokenHash } from './sealed-pair.ts';
import type { RefreshOutcome, SessionEndpoints } from './session-endpoints.ts';
import type { TokenPair } from './token-pair.ts';

const POLL_MS = 40;

/**
 * A refresh belongs to no single request: it goes on when the client that began it has gone. For a while after it,
 * whoever comes with the spent token gets the newest pair of its chain, so that a late request or a lost answer
 * signs nobody out.
 */
export class SharedRefresh {
  readonly #store: ReplayStore;
  readonly #upstream: SessionEndpoints;
  readonly #lifetimes: RecordLifetimes;
  readonly #underWay = new Map<string, Promise<RefreshOutcome>>();
  /** The keys of the tokens that this process is refreshing, whatever has become of its claims. */
  readonly #held = new Set<string>();
  /** Those of them that were signed out meanwhile, because the store may evict that sign-out. */
  readonly #endedWhileHeld = new Set<string>();
  readonly #claim = CLAIMED + crypto.randomUUID();

  constructor(settings: Settings, store: ReplayStore, upstream: SessionEndpoints) {
    this.#store = store;
    this.#upstream = upstream;
    this.#lifetimes = recordLifetimes(settings);
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
    const key = refreshTokenHash(refreshToken);
    this.#endedWhileHeld.delete(key);
    await this.#store.replace(key, ENDED, UNREACHABLE, 1);
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
    let newest: KeptPair | undefined;
    for (let token = refreshToken; ; ) {
      const key = refreshTokenHash(token);
      if (this.#held.has(key)) this.#endedWhileHeld.add(key);
      const previous = await this.#store.end(key, this.#lifetimes.signOut, newest !== undefined);
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
      const outcome = await this.#upstream.refresh(refreshToken, trace);
      return await this.#settle(outcome, refreshToken, key, trace);
    } finally {
      clearInterval(prolong);
      this.#held.delete(key);
      this.#endedWhileHeld.delete(key);
    }
  }

  /** The claim is added again when the store has lost it, and a sign-out in its place is noted. */
  async #prolong(key: string): Promise<void> {
    if (await this.#store.replace(key, this.#claim, this.#claim, CLAIM_MS)) return;
    if (!this.#held.has(key) || this.#endedWhileHeld.has(key)) return;
    const found = await this.#store.add(key, this.#claim, CLAIM_MS);
    if (found === ENDED && this.#held.has(key)) this.#endedWhileHeld.add(key);
  }

  async #settle(
    outcome: RefreshOutcome,
    refreshToken: string,
    key: string,
    trace: RequestTrace,
  ): Promise<RefreshOutcome> {
    const record = recordOf(outcome, refreshToken, Math.max(this.#lifetimes.replayMs, this.#store.lingerMs));
    // An upstream that does not rotate has not spent the token: it may be refreshed again.
    const isSpent = outcome.kind === 'renewed' && outcome.pair.refreshToken !== refreshToken;
    const lifetimeMs = isSpent
      ? Math.max(this.#lifetimes.keepMs, this.#store.lingerMs)
      : this.#store.lingerMs;
    // Sent together with the record, so that it adds no round trip.
    const marked =
      outcome.kind === 'renewed' &&
      this.#store.markIssued(refreshTokenHash(outcome.pair.refreshToken), this.#lifetimes.issuedMs);
    const wasEnded = this.#endedWhileHeld.has(key);
    const isKept = !wasEnded && (await this.#store.replace(key, this.#claim, record, lifetimeMs));
    await marked;
    if (isKept) return outcome;

    // The claim is gone: the session was signed out, or the store lost the claim and another has refreshed as well.
    const found = wasEnded ? ENDED : await this.#store.add(key, record, lifetimeMs);
    if (found === ENDED) {
      // It was signed out meanwhile; the upstream hears of the late pair too, or not.
      if (outcome.kind !== 'renewed') return { kind: 'rejected' };
      // The refresh has spent the token, so its sign-out is kept in full.
      await this.#store.end(key, this.#lifetimes.signOut, true);
      await this.#upstream.signOut(outcome.pair, trace).catch(() => {});
      return { kind: 'rejected' };
    }
    const theirs = openRenewed(found, refreshToken);
    if (outcome.kind !== 'renewed') return theirs ? { kind: 'renewed', pair: replayed(theirs) } : outcome;
    if (found !== undefined && !theirs) await this.#store.replace(key, found, record, lifetimeMs);
    return outcome;
  }
}
