/** Shares one refresh among all requests with the same refresh token, because a rotating token works only once. */

import type { RequestRecord } from '../record/request-record.ts';
import type { Settings } from '../settings/settings.ts';
import type { TokenPair } from '../upstream/token-pair.ts';
import type { UpstreamApi } from '../upstream/upstream-api.ts';
import { RefreshClaims, type RefreshRequest } from './claims.ts';
import { type Clock, systemClock } from './clock.ts';
import { hasReplayEnded, PresentedTokens } from './presented-tokens.ts';
import { decryptSuccessor, type Ended, outcomeOf, type RefreshOutcome, replayed } from './record.ts';
import { type KeptPair, refreshTokenHash } from './sealed-pair.ts';
import { type RecordLifetimes, type ReplayStore, recordLifetimes } from './store.ts';

/** A third of the places of session checks: while a request waits, it keeps its place from others. */
const MAX_WAITING = 250;

/**
 * A refresh belongs to no single request: it continues when the client that caused it disconnects. For a while after
 * it, requests with the spent token get the newest pair of its chain, so that neither a late request nor a lost
 * response signs a user out. Once a client certainly has the new token, the spent one is sent to the upstream, which
 * can detect its reuse.
 */
export class RefreshCoordinator {
  readonly #store: ReplayStore;
  readonly #upstream: UpstreamApi;
  readonly #clock: Clock;
  readonly #lifetimes: RecordLifetimes;
  readonly #claims: RefreshClaims;
  readonly #presented: PresentedTokens;
  readonly #inFlight = new Set<Promise<RefreshOutcome>>();
  /** The refreshes in flight whose outcome is still shared, by refresh token. */
  readonly #shared = new Map<string, Promise<RefreshOutcome>>();
  #requests = 0;

  constructor(settings: Settings, store: ReplayStore, upstream: UpstreamApi, clock = systemClock) {
    this.#store = store;
    this.#upstream = upstream;
    this.#clock = clock;
    this.#lifetimes = recordLifetimes(settings);
    this.#claims = new RefreshClaims(store, upstream, clock, this.#lifetimes);
    this.#presented = new PresentedTokens(store);
  }

  /** Notes that a client has presented this token. Call it for every request, before its token is refreshed. */
  present(refreshToken: string, arrivedAt: number): void {
    this.#presented.note(refreshToken, arrivedAt);
  }

  /**
   * Returns the pair that follows this refresh token, by a new refresh or by an earlier one.
   *
   * @param arrivedAt when the request arrived, in milliseconds since the epoch
   */
  async refresh(refreshToken: string, record: RequestRecord, arrivedAt: number): Promise<RefreshOutcome> {
    this.#requests++;
    if (this.#requests > MAX_WAITING) this.#store.stopWaiting();
    return this.#refreshOrShare({ refreshToken, record, arrivedAt }).finally(() => this.#requests--);
  }

  async #refreshOrShare(refreshing: RefreshRequest): Promise<RefreshOutcome> {
    const { refreshToken, record } = refreshing;
    const known = this.#shared.get(refreshToken);
    if (known) {
      const outcome = await known;
      record.refresh = outcome.kind === 'renewed' ? 'shared' : outcome.kind;
      return outcome;
    }
    // From here on, the next request with the token may arrive after the replay window has closed, or after a sign-out.
    const stopSharing = () => {
      if (this.#shared.get(refreshToken) === own) this.#shared.delete(refreshToken);
    };
    const own = this.#claimOrFollow(refreshing, stopSharing).finally(() => {
      stopSharing();
      this.#inFlight.delete(own);
    });
    this.#shared.set(refreshToken, own);
    this.#inFlight.add(own);
    const outcome = await own;
    if (outcome.kind !== 'renewed') record.refresh = outcome.kind;
    return outcome;
  }

  /** Resolves when no refresh is in flight. Interrupting one would lose the new pair after the old token is spent. */
  async settled(): Promise<void> {
    while (this.#inFlight.size) await Promise.allSettled(this.#inFlight);
  }

  /** Removes the sign-out of this token, because some providers issue the same refresh token at the next sign-in. */
  async forgetSignOut(refreshToken: string): Promise<void> {
    const key = refreshTokenHash(refreshToken);
    this.#claims.noteEnd(key, undefined);
    const record = await this.#store.get(key);
    if (record?.kind === 'ended') await this.#store.replace(key, record, { kind: 'unreachable' }, 1);
  }

  /**
   * Returns the newest pair that follows this one, without a refresh; undefined when it was signed out. It keeps a slow
   * response from bringing an older pair back to the browser.
   */
  async newest(pair: TokenPair): Promise<TokenPair | undefined> {
    const { record, successor } = await this.#endOfChain(pair.refreshToken);
    if (record?.kind === 'ended') return undefined;
    return successor ? replayed(successor, this.#clock.now()) : pair;
  }

  /**
   * Ends the replay of this refresh token and of all its successors, and discards a refresh in flight.
   *
   * @param clearsAfterMs for how long from now arriving requests keep their cookies
   * @returns the newest successor, which only the gateway knows, and whether the token had ended before
   */
  async end(
    refreshToken: string,
    clearsAfterMs = 0,
  ): Promise<{ readonly newest: TokenPair | undefined; readonly hadEnded: boolean }> {
    const ended: Ended = { kind: 'ended', clearsFrom: this.#clock.now() + clearsAfterMs };
    let newest: KeptPair | undefined;
    let hadEnded = false;
    for (let token = refreshToken; ; ) {
      const key = refreshTokenHash(token);
      this.#claims.noteEnd(key, ended);
      const previous = await this.#store.end(key, ended, this.#lifetimes.signOut, newest !== undefined);
      if (token === refreshToken) hadEnded = previous?.kind === 'ended';
      const successor = await decryptSuccessor(previous, token);
      if (!successor) return { newest: newest && replayed(newest, this.#clock.now()), hadEnded };
      newest = successor;
      token = successor.refreshToken;
    }
  }

  isRefreshing(refreshToken: string): boolean {
    return this.#claims.isRefreshing(refreshTokenHash(refreshToken));
  }

  async #claimOrFollow(refreshing: RefreshRequest, stopSharing: () => void): Promise<RefreshOutcome> {
    const { refreshToken, record, arrivedAt } = refreshing;
    const seen = new Set<string>();
    for (let token = refreshToken; ; ) {
      const turn = await this.#claims.claimOrWait(token, refreshing, stopSharing);
      if (!turn.found) return this.#claims.refresh(turn.running, record, stopSharing);
      const { successor } = turn;
      if (!successor) return outcomeOf(turn.found);
      seen.add(token);
      token = successor.refreshToken;
      if (seen.has(token)) return this.#replay(successor, record);
      if (!turn.hasWaited && this.#isLate(arrivedAt, successor)) return this.#reuse(refreshing, 'late');
      const standing = await this.#standingOf(successor, arrivedAt);
      if (standing === 'newest') return this.#replay(successor, record);
      if (standing === 'presented') return this.#reuse(refreshing, 'presented');
    }
  }

  #replay(successor: KeptPair, record: RequestRecord): RefreshOutcome {
    record.refresh ??= 'replayed';
    return { kind: 'renewed', pair: replayed(successor, this.#clock.now()) };
  }

  /** Whether the request arrived after the replay window. */
  #isLate(arrivedAt: number, { renewedAt }: KeptPair): boolean {
    // Other processes that wait for the outcome need time to read it.
    return arrivedAt > renewedAt + Math.max(this.#lifetimes.replayMs, this.#store.lingerMs);
  }

  /** Whether a successor is still the newest pair, or was presented by a client, or was spent or has expired. */
  async #standingOf({ refreshToken, expiresAt }: KeptPair, arrivedAt: number) {
    const key = refreshTokenHash(refreshToken);
    const [record, presentedAt] = await Promise.all([this.#store.get(key), this.#store.presentedAt(key)]);
    const next = await decryptSuccessor(record, refreshToken);
    if (hasReplayEnded(arrivedAt, presentedAt, next)) return 'presented';
    return record === undefined && expiresAt > this.#clock.now() ? 'newest' : 'spent';
  }

  /**
   * Sends a spent token to the upstream, unless its chain was signed out here. The record of its successor stays,
   * because a sign-out must find the rest of the chain.
   */
  async #reuse({ refreshToken, record }: RefreshRequest, why: 'presented' | 'late'): Promise<RefreshOutcome> {
    const before = await this.#endOfChain(refreshToken);
    if (before.record?.kind === 'ended') return before.record;
    record.refreshTokenReused = why;
    record.refresh = 'renewed';
    const outcome = await this.#upstream.refresh(refreshToken, record);
    if (outcome.kind !== 'renewed') return outcome;
    await this.#store.markIssued(refreshTokenHash(outcome.pair.refreshToken), this.#lifetimes.issuedMs);
    const after = await this.#endOfChain(refreshToken);
    if (after.record?.kind !== 'ended') return outcome;
    await this.#upstream.signOut(outcome.pair, record).catch(() => {});
    return after.record;
  }

  /** Returns the newest pair that follows this refresh token, if any, and the record of the newest token. */
  async #endOfChain(refreshToken: string) {
    const seen = new Set<string>();
    let successor: KeptPair | undefined;
    for (let token = refreshToken; ; ) {
      seen.add(token);
      const record = await this.#store.get(refreshTokenHash(token));
      const next = await decryptSuccessor(record, token);
      if (!next || seen.has(next.refreshToken)) return { record, successor: next ?? successor };
      successor = next;
      token = next.refreshToken;
    }
  }
}
