/** Decides what a request gets for its refresh token: a new pair, the pair of an earlier refresh, or an end. */

import type { RequestRecord } from '../record/request-record.ts';
import type { Settings } from '../settings/settings.ts';
import type { TokenPair, Tokens } from '../upstream/token-pair.ts';
import type { RefreshVerdict, UpstreamApi } from '../upstream/upstream-api.ts';
import { systemClock } from './clock.ts';
import { factKey, ISSUED, lifetimesFor, markKey, pairIn, type RefreshParts } from './facts.ts';
import { type Asking, discardPair, type Found, LeasedRefreshes } from './leased-refresh.ts';
import { PresentedTokens } from './presented-tokens.ts';
import { type Fact, isByStrangers, type Kept, type ReplayStore } from './store.ts';

/** Follows at most this many tokens: each costs three reads, and no call outlives so many refreshes. */
const MAX_LINKS = 32;
/** For this long after a client got new cookies, a request may still arrive that it sent with the old ones. */
export const SENT_BEFORE_MS = 10_000;
/** What a sign-in that issues the same token again makes untrue. */
const FORGOTTEN = new Set<Fact['kind']>(['ended', 'rejected', 'reissued']);
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
interface RefreshRequest extends Asking {
  readonly refreshToken: string;
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
    this.presented = new PresentedTokens(this.#parts);
    this.#refreshes = new LeasedRefreshes(this.#parts, this.presented);
  }

  /**
   * Returns the pair that follows this refresh token, by a new refresh or by an earlier one. A refresh belongs to no
   * single request: it continues when the client that caused it disconnects.
   *
   * @param arrivedAt by the clock of the refreshes
   * @param refusedToken the access token that the upstream has refused; undefined when the request has none
   */
  async refresh(
    refreshToken: string,
    record: RequestRecord,
    arrivedAt: number,
    refusedToken?: string,
  ): Promise<RefreshOutcome> {
    const outcome = await this.#follow({ refreshToken, record, arrivedAt, refusedToken });
    if (outcome.kind !== 'renewed') record.refresh = outcome.kind;
    return outcome;
  }

  /** Forgets how this token has ended, or its pair, because some upstreams issue the same one at the next sign-in. */
  async forget(refreshToken: string): Promise<void> {
    const { store } = this.#parts;
    const key = factKey(refreshToken);
    for (;;) {
      const fact = await store.get(key);
      if (!fact || !FORGOTTEN.has(fact.kind)) return;
      // Otherwise another instance has changed the fact meanwhile.
      if ((await store.swap(key, fact, undefined)).isWritten) return;
    }
  }

  /**
   * Returns the newest pair that follows this one, without a refresh; undefined when the session is over, or when too
   * many pairs follow. So a slow response does not bring an older pair back to the browser.
   *
   * @param reusedToken the spent token whose reuse gave the pair; its former chain may have been signed out
   */
  async newest<Known extends Tokens>(
    pair: Known,
    reusedToken?: string,
  ): Promise<Known | TokenPair | undefined> {
    const { fact, newest, next, reissued } = await this.#lastOfChain(pair.refreshToken);
    const former = reusedToken === undefined ? fact : (await this.#lastOfChain(reusedToken)).fact;
    const isOver = fact?.kind === 'rejected' || [fact, former].some((each) => each?.kind === 'ended');
    if (next || isOver) return undefined;
    const last = reissued ?? newest ?? pair;
    return last.accessToken === pair.accessToken ? pair : last;
  }

  /**
   * Ends the replay of this refresh token and of its successors, and discards a refresh in flight.
   *
   * @param graceMs for how long from now a request that arrives keeps its cookies, because a sign-in has set new ones
   * @returns the newest successor, which only the gateway knows; whether the last token had ended before; and whether a
   *   refresh is in flight, which signs out its own pair
   */
  async end(refreshToken: string, graceMs = 0) {
    const end = async (token: string, isSuccessor: boolean) => ({
      fact: await this.#endOne(token, graceMs, isSuccessor),
    });
    const { fact, newest } = await this.#lastOfChain(refreshToken, end);
    return { newest, hadEnded: fact?.kind === 'ended', isRefreshing: fact?.kind === 'leased' };
  }

  /**
   * Returns the fact that was there. A token is real when a refresh has issued or spent it, or is about to, and when it is
   * replaced at a sign-in: strangers can sign out with made-up tokens, but cannot sign in.
   */
  async #endOne(refreshToken: string, graceMs: number, isSuccessor: boolean): Promise<Kept | undefined> {
    const { store, lifetimes } = this.#parts;
    const key = factKey(refreshToken);
    for (;;) {
      const fact = await store.get(key);
      if (fact?.kind === 'ended' && graceMs === 0) {
        store.keep(key, fact, lifetimes.endedMs);
        return fact;
      }
      const isKnown = graceMs > 0 || isSuccessor || (fact && !isByStrangers(fact));
      const isReal = isKnown || (await store.get(markKey(refreshToken)));
      const to: Fact = { kind: 'ended', detail: isReal ? String(graceMs) : '' };
      if ((await store.swap(key, fact, to, lifetimes.endedMs)).isWritten) return fact;
    }
  }

  async #follow(request: RefreshRequest): Promise<RefreshOutcome> {
    const refresh = (token: string) => this.#refreshes.refresh(token, request);
    for await (const { verdict, fact, next, reissued } of this.#visitChain(request.refreshToken, refresh)) {
      if (verdict) return verdict;
      if (reissued) {
        request.record.refresh ??= 'replayed';
        return { kind: 'renewed', pair: reissued };
      }
      if (!fact) return { kind: 'unreachable', cause: new Error('another instance keeps its lease') };
      if (fact.kind === 'ended' || fact.kind === 'rejected') return this.#over(fact, request);
      const outcome = next && (await this.#judge(request, fact, next));
      if (outcome) return outcome;
    }
    return { kind: 'unreachable', cause: new Error('no pair is known') };
  }

  /** Replays the successor of a renewed token, or sends the token as a reuse. Undefined: follow the successor. */
  async #judge(request: RefreshRequest, renewal: Kept, next: TokenPair): Promise<RefreshOutcome | undefined> {
    const { arrivedAt } = request;
    const keys = [factKey(next.refreshToken), markKey(next.refreshToken)];
    const [fact, mark] = await Promise.all(keys.map((key) => this.#parts.store.get(key)));
    const isPresented = mark?.kind === 'presented';
    const { replayMs } = this.#parts.lifetimes;
    // When the successor was presented, or was last on its way.
    const { writtenAt } = mark ?? renewal;
    const isSpent = fact?.kind === 'renewed' && arrivedAt > fact.writtenAt;
    const isLate = arrivedAt > (replayMs > 0 ? writtenAt : renewal.writtenAt) + replayMs;
    // A client has provably received the successor, so this is a reuse. @see RFC 9700 section 4.14.2
    if (isLate || (isPresented && (isSpent || !isStraggler(request, writtenAt))))
      return this.#reuse(request, renewal, next);
    // The successor is followed when there is a fact about it, such as its renewal, or its access token has expired.
    if (fact || next.expiresInSeconds <= 0) return undefined;
    request.record.refresh ??= 'replayed';
    void this.presented.issue(next.refreshToken, ISSUED);
    return { kind: 'renewed', pair: usable(next) };
  }

  /**
   * Sends a spent token to the upstream, which can detect its reuse, unless its chain was signed out here. The
   * renewal of the token is kept, because a sign-out finds the rest of the chain by it.
   */
  async #reuse(request: RefreshRequest, renewal: Kept, next: TokenPair): Promise<RefreshOutcome> {
    const { refreshToken, record } = request;
    const { store, upstream } = this.#parts;
    const { fact: before, links } = await this.#lastOfChain(refreshToken);
    if (before?.kind === 'ended') return this.#over(before, request);
    const marks = await Promise.all(links.map(({ next }) => next && store.get(markKey(next.refreshToken))));
    record.refreshTokenReused = marks.some((mark) => mark?.kind === 'presented') ? 'presented' : 'late';
    record.refresh = 'renewed';
    const verdict = await upstream.refresh(refreshToken, record);
    const pair = verdict.kind === 'renewed' ? verdict.pair : undefined;
    if (pair) await this.presented.issue(pair.refreshToken);
    const { fact: after } = await this.#lastOfChain(refreshToken);
    if (after?.kind === 'ended') {
      if (pair) await discardPair(this.#parts, pair, after, record);
      return this.#over(after, request);
    }
    // Read only now, because a client may have presented the successor meanwhile.
    const { writtenAt } = (await store.get(markKey(next.refreshToken))) ?? renewal;
    return { ...verdict, clearsCookies: !isStraggler(request, writtenAt) };
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

  /** Visits the chain. Returns its last link, and all; after too many, the last one has a `next`. */
  async #lastOfChain(refreshToken: string, visit?: Visit) {
    const get = async (token: string) => ({ fact: await this.#parts.store.get(factKey(token)) });
    const links = await Array.fromAsync(this.#visitChain(refreshToken, visit ?? get));
    return { ...links.at(-1), links };
  }

  /**
   * Visits this token and each of its successors. Yields what is found, with the newest pair so far, the next one, and one
   * that has the same refresh token again.
   */
  async *#visitChain(refreshToken: string, visit: Visit) {
    let newest: TokenPair | undefined;
    for (let links = 0; links < MAX_LINKS; links++) {
      const token = newest?.refreshToken ?? refreshToken;
      const found = await visit(token, links > 0);
      const pair = await pairIn(found.fact, token, this.#parts.clock.now());
      const [next, reissued] = found.fact?.kind === 'reissued' ? [undefined, pair] : [pair];
      yield { ...found, next, newest: newest && usable(newest), reissued: reissued && usable(reissued) };
      if (!next) return;
      newest = next;
    }
  }
}

type Visit = (refreshToken: string, isSuccessor: boolean) => Promise<Found>;

/**
 * Whether the request may have been sent before its browser had the successor, whose cookies must then stay.
 *
 * @param seenAt when the successor was presented, or was last on its way
 */
function isStraggler({ arrivedAt }: RefreshRequest, seenAt: number): boolean {
  return arrivedAt <= seenAt + SENT_BEFORE_MS;
}

/** In whole seconds, at least one: with 0 a browser would delete the cookie of a token that has just expired. */
function usable(pair: TokenPair): TokenPair {
  return { ...pair, expiresInSeconds: Math.max(1, Math.floor(pair.expiresInSeconds)) };
}
