/** Sends a refresh token to the upstream under a lease, so that no other request or instance sends it as well. */

import type { RequestRecord } from '../record/request-record.ts';
import type { TokenPair } from '../upstream/token-pair.ts';
import type { RefreshVerdict } from '../upstream/upstream-api.ts';
import { factKey, factOf, LEASE_MS, pairIn, type RefreshParts } from './facts.ts';
import type { PresentedTokens } from './presented-tokens.ts';
import type { Fact, Kept } from './store.ts';

const POLL_MS = 40;
/** What a pair replaces that has arrived after its lease was lost. */
const GIVING_WAY = new Set<Fact['kind']>(['leased', 'rejected', 'reissued']);

/** What a refresh needs to know of the request that asks for it. */
export interface Asking {
  readonly record: RequestRecord;
  /** The access token that the upstream has refused; undefined when the request had none. */
  readonly refusedToken: string | undefined;
}

/**
 * The verdict of a refresh, or the fact that spares it, which each request has to judge for itself. Both are undefined
 * when another instance has kept its lease for too long.
 */
export interface Found {
  readonly verdict?: RefreshVerdict;
  readonly fact?: Kept | undefined;
}

export class LeasedRefreshes {
  readonly #parts: RefreshParts;
  readonly #presented: PresentedTokens;
  /** The refreshes in flight, bounded by the calls that may be in flight, because each is deleted when it ends. */
  readonly #shared = new Map<string, Promise<Found>>();
  /** Tokens with a verdict whose fact is not written yet. A later request waits, then reads the fact: it may be a sign-out. */
  readonly #decided = new Set<string>();

  constructor(parts: RefreshParts, presented: PresentedTokens) {
    this.#parts = parts;
    this.#presented = presented;
  }

  /** A request that joins a refresh which ends without a verdict begins again, so it may wait for twice `patienceMs`. */
  async refresh(refreshToken: string, asking: Asking): Promise<Found> {
    for (let hasJoined = false; ; hasJoined = true) {
      const shared = this.#shared.get(refreshToken);
      if (!shared) return this.#begin(refreshToken, asking);
      const isDecided = this.#decided.has(refreshToken);
      const found = await shared;
      // That refresh may have read its fact, or begun to wait, before this request came. The next one cannot have.
      const mayBeOld = !found.verdict && !hasJoined;
      if (isDecided || mayBeOld) continue;
      asking.record.refresh = 'shared';
      return found;
    }
  }

  #begin(refreshToken: string, asking: Asking): Promise<Found> {
    const found = this.#findOrSend(refreshToken, asking).finally(() => {
      this.#shared.delete(refreshToken);
      this.#decided.delete(refreshToken);
    });
    this.#shared.set(refreshToken, found);
    return found;
  }

  /** Sends the token when no fact spares that. */
  async #findOrSend(refreshToken: string, asking: Asking): Promise<Found> {
    const { record, refusedToken } = asking;
    const { store, clock, lifetimes } = this.#parts;
    const key = factKey(refreshToken);
    const beganAt = clock.now();
    const patientUntil = beganAt + lifetimes.patienceMs;
    for (let hasWaited = false; clock.now() <= patientUntil; hasWaited = true) {
      if (hasWaited) {
        record.refresh = 'shared';
        await clock.sleep(POLL_MS);
      }
      const fact = await store.get(key);
      if (fact?.kind === 'leased') continue;
      // That there was no verdict counts for those who have waited for it.
      const isOld = fact?.kind === 'unreachable' && !(hasWaited && fact.writtenAt >= beganAt);
      if (fact && !isOld && (await this.#isOfUse(fact, refreshToken, refusedToken))) return { fact };
      // Each lease is unique, so that a process can tell its own from another.
      const lease: Fact = { kind: 'leased', detail: crypto.randomUUID() };
      const askedAt = clock.now();
      const { isWritten } = await store.swap(key, fact, lease, LEASE_MS);
      // A process that has stood still meanwhile may have lost its lease again.
      if (!isWritten || clock.now() - askedAt >= LEASE_MS) continue;
      const found = await this.#send(refreshToken, lease, record);
      if (found.fact?.kind !== 'leased') return found;
    }
    return {};
  }

  /** A pair with the same refresh token helps while its access token is good, and another one than the refused one. */
  async #isOfUse(fact: Kept, refreshToken: string, refusedToken: string | undefined): Promise<boolean> {
    if (fact.kind !== 'reissued') return true;
    const pair = await pairIn(fact, refreshToken, this.#parts.clock.now());
    return pair !== undefined && pair.expiresInSeconds > 0 && pair.accessToken !== refusedToken;
  }

  async #send(refreshToken: string, lease: Fact, record: RequestRecord): Promise<Found> {
    const { store, upstream, clock, lifetimes } = this.#parts;
    const key = factKey(refreshToken);
    record.refresh = 'renewed';
    const stop = clock.every(LEASE_MS / 3, () => void store.swap(key, lease, lease, LEASE_MS));
    // Stopped before the fact is written, because it would put the lease back in its place.
    const verdict = await upstream.refresh(refreshToken, record).finally(stop);
    this.#decided.add(refreshToken);
    const pair = verdict.kind === 'renewed' ? verdict.pair : undefined;
    // Sent in parallel with the fact, so that it adds no round trip.
    const marked = pair && this.#presented.issue(pair.refreshToken);
    const [fact] = await Promise.all([this.#replaceLease(refreshToken, lease, verdict), marked]);
    if (!fact) return { verdict };
    if (fact.kind === 'ended') {
      // The session has ended while its refresh was in flight.
      await store.swap(key, fact, endAfter(verdict, fact), lifetimes.endedMs);
      if (pair) await discardPair(this.#parts, pair, fact, record);
    }
    return { fact };
  }

  /** Returns the fact that counts instead, by the table in README.md; undefined when the verdict counts. */
  async #replaceLease(refreshToken: string, lease: Fact, verdict: RefreshVerdict): Promise<Kept | undefined> {
    const { store, lifetimes } = this.#parts;
    const lifetimeMs = lifetimes[`${verdict.kind}Ms`];
    const to = await factOf(verdict, refreshToken);
    for (let from: Fact | undefined = lease; ; ) {
      const { isWritten, before } = await store.swap(factKey(refreshToken), from, to, lifetimeMs);
      if (isWritten) return undefined;
      // The lease was lost. If nothing is there, that is replaced; if it cannot be, the verdict counts.
      const isFree = before ? before.kind === 'unreachable' : from !== undefined;
      const givesWay = before && GIVING_WAY.has(before.kind);
      if (!isFree && !(givesWay && verdict.kind === 'renewed')) return before;
      from = before;
    }
  }
}

/** The end of a session, when the upstream has said whether its token may be made up. */
function endAfter({ kind }: RefreshVerdict, end: Fact): Fact {
  if (kind === 'renewed') return { ...end, detail: end.detail || '0' };
  return kind === 'rejected' && isSignOut(end) ? { ...end, detail: '' } : end;
}

/** A sign-in has a grace period. */
function isSignOut(end: Fact): boolean {
  return Number(end.detail) === 0;
}

/**
 * Signs a pair out at the upstream that has arrived after a sign-out. After a sign-in, which ends a session only in
 * the gateway, it is only discarded: the upstream may end the new session, too.
 */
export async function discardPair(
  { upstream }: RefreshParts,
  pair: TokenPair,
  end: Fact,
  record: RequestRecord,
): Promise<void> {
  if (isSignOut(end)) await upstream.signOut(pair, record).catch(() => {});
}
