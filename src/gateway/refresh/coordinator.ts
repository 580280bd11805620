/** Decides what a request gets for its refresh token: a new pair, the pair of an earlier refresh, or an end. */

import type { RequestRecord } from '../record/request-record.ts';
import type { Settings } from '../settings/settings.ts';
import type { TokenPair } from '../upstream/token-pair.ts';
import type { RefreshVerdict, UpstreamApi } from '../upstream/upstream-api.ts';
import { systemClock } from './clock.ts';
import { factKey, lifetimesFor, markKey, type RefreshParts, successorIn } from './facts.ts';
import { LeasedRefreshes } from './leased-refresh.ts';
import { PresentedTokens } from './presented-tokens.ts';
import type { Fact, Kept, ReplayStore } from './store.ts';

/** Bounds the successors of a token that are followed, because each costs three reads, to more than a call misses. */
export const MAX_LINKS = 32;
/** For this long after a client got new cookies, a request may still arrive that it sent with the old ones. */
export const SENT_BEFORE_MS = 10_000;
/** No sign-in is faster, because it goes by way of the identity provider. */
const SIGN_IN_TAKES_MS = 1000;

/**
 * What a request gets for its refresh token: a verdict, perhaps of an earlier refresh, or the end of its session.
 * `clearsCookies` is false when a sign-in may have set other cookies since the request was sent.
 */
export type RefreshOutcome = (RefreshVerdict | { readonly kind: 'ended' }) & {
  readonly clearsCookies?: boolean;
};

/** A request that needs a refresh. */
interface RefreshRequest {
  readonly refreshToken: string;
  readonly record: RequestRecord;
  readonly arrivedAt: number;
}

/** The laws of the refresh are in README.md. */
export class RefreshCoordinator {
  readonly #parts: RefreshParts;
  readonly #refreshes: LeasedRefreshes;
  /** The token of every request must be noted here before it is refreshed. */
  readonly presented: PresentedTokens;

  constructor(settings: Settings, store: ReplayStore, upstream: UpstreamApi, clock = systemClock) {
    this.#parts = { store, upstream, clock, lifetimes: lifetimesFor(settings) };
    this.#refreshes = new LeasedRefreshes(this.#parts);
    this.presented = new PresentedTokens(this.#parts);
  }

  /**
   * Returns the pair that follows this refresh token, by a new refresh or by an earlier one. A refresh belongs to no
   * single request: it continues when the client that caused it disconnects.
   *
   * @param arrivedAt in milliseconds since the epoch
   */
  async refresh(refreshToken: string, record: RequestRecord, arrivedAt: number): Promise<RefreshOutcome> {
    const outcome = await this.#follow({ refreshToken, record, arrivedAt });
    if (outcome.kind !== 'renewed') record.refresh = outcome.kind;
    return outcome;
  }

  /** Forgets how this token has ended, because some providers issue the same refresh token at the next sign-in. */
  async forgetEnd(refreshToken: string): Promise<void> {
    const { store } = this.#parts;
    const key = factKey(refreshToken);
    const fact = await store.get(key);
    if (fact?.kind === 'ended' || fact?.kind === 'rejected') await store.swap(key, fact, undefined);
  }

  /**
   * Returns the newest pair that follows this one, without a refresh; undefined when the session is over, or when too
   * many pairs follow. So a slow response does not bring an older pair back to the browser.
   */
  async newest(pair: TokenPair): Promise<TokenPair | undefined> {
    const end = await this.#endOfChain(pair.refreshToken);
    const isOver = !end || end.fact?.kind === 'ended' || end.fact?.kind === 'rejected';
    return isOver ? undefined : (end.newest ?? pair);
  }

  /**
   * Ends the replay of this refresh token and of its successors, and discards a refresh in flight.
   *
   * @param graceMs for how long from now a request that arrives keeps its cookies, because a sign-in has set new ones
   * @returns the newest successor, which only the gateway knows; whether the last token had ended before; and whether a
   *   refresh is in flight, which signs out its own pair
   */
  async end(refreshToken: string, graceMs = 0) {
    let newest: TokenPair | undefined;
    for (let token = refreshToken, links = 0; ; links++) {
      const previous = await this.#endOne(token, graceMs, links > 0);
      const next =
        links < MAX_LINKS ? await successorIn(previous, token, this.#parts.clock.now()) : undefined;
      if (!next)
        return { newest, hadEnded: previous?.kind === 'ended', isRefreshing: previous?.kind === 'leased' };
      newest = usable(next);
      token = next.refreshToken;
    }
  }

  /** Returns the fact that was there. A token is known when a refresh has issued or spent it, or is about to. */
  async #endOne(refreshToken: string, graceMs: number, isSuccessor: boolean): Promise<Kept | undefined> {
    const { store, lifetimes } = this.#parts;
    const key = factKey(refreshToken);
    const to: Fact = { kind: 'ended', detail: String(graceMs) };
    for (;;) {
      const fact = await store.get(key);
      if (fact?.kind === 'ended' && graceMs === 0) return fact;
      // A stranger can sign out with a made-up token, but cannot sign in, which has a grace period.
      const isKnown = graceMs > 0 || fact || isSuccessor || (await store.get(markKey(refreshToken)));
      if (!isKnown && (await store.keepHere(key, to, lifetimes.endedMs))) return undefined;
      if ((await store.swap(key, fact, to, lifetimes.endedMs)).isWritten) return fact;
    }
  }

  async #follow(request: RefreshRequest): Promise<RefreshOutcome> {
    let token = request.refreshToken;
    for (let links = 0; links < MAX_LINKS; links++) {
      const found = await this.#refreshes.refresh(token, request.record);
      if (!('writtenAt' in found)) return found;
      if (found.kind === 'ended' || found.kind === 'rejected') return this.#over(found, request);
      if (found.kind === 'leased')
        return { kind: 'unreachable', cause: new Error('another instance keeps its lease') };
      const successor = await successorIn(found, token, this.#parts.clock.now());
      if (!successor) break;
      const outcome = await this.#judge(request, found, successor);
      if (outcome) return outcome;
      token = successor.refreshToken;
    }
    return { kind: 'unreachable', cause: new Error('no pair is known') };
  }

  /** Replays the successor of a renewed token, or sends the token as a reuse. Undefined: follow the successor. */
  async #judge(
    request: RefreshRequest,
    renewal: Kept,
    successor: TokenPair,
  ): Promise<RefreshOutcome | undefined> {
    const { arrivedAt } = request;
    const keys = [factKey(successor.refreshToken), markKey(successor.refreshToken)];
    const [fact, mark] = await Promise.all(keys.map((key) => this.#parts.store.get(key)));
    const isPresented = mark?.kind === 'presented';
    // It may have been sent before its browser had the successor, whose cookies must then stay.
    const isStraggler = arrivedAt <= (isPresented ? mark : renewal).writtenAt + SENT_BEFORE_MS;
    const isSpent = fact?.kind === 'renewed' && arrivedAt > fact.writtenAt;
    const isLate = arrivedAt > renewal.writtenAt + this.#parts.lifetimes.replayMs;
    // A client has provably received the successor, so the spent token is a replay. @see RFC 9700 section 4.14.2
    if (isLate || (isPresented && (isSpent || !isStraggler))) return this.#reuse(request, !isStraggler);
    // The successor is followed when there is a fact about it, such as its renewal, or its access token has expired.
    if (fact || successor.expiresInSeconds <= 0) return undefined;
    request.record.refresh ??= 'replayed';
    return { kind: 'renewed', pair: usable(successor) };
  }

  /**
   * Sends a spent token to the upstream, which can detect its reuse, unless its chain was signed out here. The
   * renewal of the token is kept, because a sign-out finds the rest of the chain by it.
   */
  async #reuse(request: RefreshRequest, clearsCookies: boolean) {
    const { refreshToken, record } = request;
    const before = await this.#endOfChain(refreshToken);
    if (before?.fact?.kind === 'ended') return this.#over(before.fact, request);
    record.refreshTokenReused = (await this.#wasSucceeded(refreshToken)) ? 'presented' : 'late';
    record.refresh = 'renewed';
    const verdict = await this.#parts.upstream.refresh(refreshToken, record);
    const pair = verdict.kind === 'renewed' ? verdict.pair : undefined;
    if (pair) await this.#refreshes.markIssued(pair.refreshToken);
    const after = await this.#endOfChain(refreshToken);
    if (after?.fact?.kind !== 'ended') return { ...verdict, clearsCookies };
    if (pair) await this.#parts.upstream.signOut(pair, record).catch(() => {});
    return this.#over(after.fact, request);
  }

  /** Whether a client has presented a token that follows this one, so that two clients have the session. */
  async #wasSucceeded(refreshToken: string): Promise<boolean> {
    const { store, clock } = this.#parts;
    for (let token = refreshToken, links = 0; links < MAX_LINKS; links++) {
      const next = await successorIn(await store.get(factKey(token)), token, clock.now());
      if (!next) return false;
      const mark = await store.get(markKey(next.refreshToken));
      if (mark?.kind === 'presented') return true;
      token = next.refreshToken;
    }
    return false;
  }

  /**
   * Clears the cookies only if no sign-in can have replaced them: the request came after the fact and its grace period,
   * and has taken less time than a sign-in does.
   */
  #over({ kind, detail, writtenAt }: Kept, { arrivedAt }: RefreshRequest): RefreshOutcome {
    const isQuick = this.#parts.clock.now() - arrivedAt < SIGN_IN_TAKES_MS;
    const clearsCookies = isQuick && arrivedAt >= writtenAt + Number(detail);
    return { kind: kind === 'rejected' ? kind : 'ended', clearsCookies };
  }

  /** Returns the newest pair after this token, if any, and the fact about the last token; undefined after too many. */
  async #endOfChain(refreshToken: string) {
    let newest: TokenPair | undefined;
    for (let links = 0; links <= MAX_LINKS; links++) {
      const token = newest?.refreshToken ?? refreshToken;
      const fact = await this.#parts.store.get(factKey(token));
      const next = await successorIn(fact, token, this.#parts.clock.now());
      if (!next) return { fact, newest };
      newest = usable(next);
    }
    return undefined;
  }
}

/** In whole seconds, at least one: with 0 a browser would delete the cookie of a token that has just expired. */
function usable(pair: TokenPair): TokenPair {
  return { ...pair, expiresInSeconds: Math.max(1, Math.floor(pair.expiresInSeconds)) };
}
