/** Refreshes a token under a claim in the replay store, so that no other request or instance refreshes it as well. */

import type { RequestTrace } from '../trace/request-trace.ts';
import type { RefreshOutcome, UpstreamApi } from '../upstream/upstream-api.ts';
import type { Clock } from './clock.ts';
import { decryptSuccessor, outcomeOf, recordOf, replayed } from './record.ts';
import { CLAIM_MS, type RecordLifetimes } from './record-lifetimes.ts';
import { isSpent } from './replay-window.ts';
import { refreshTokenHash } from './sealed-pair.ts';
import { CLAIMED, isEnded, type ReplayStore, UNREACHABLE } from './store.ts';

const POLL_MS = 40;

/** A request that needs a refresh. */
export interface RefreshRequest {
  /** The token that the client presented. */
  readonly refreshToken: string;
  readonly trace: RequestTrace;
  /** In milliseconds since the epoch. */
  readonly arrivedAt: number;
}

export interface FoundOutcome {
  readonly record: string;
  /** Whether the request waited for this refresh. */
  readonly hasWaited: boolean;
}

/** A token that this process is refreshing. */
interface Claimed {
  readonly refreshToken: string;
  readonly key: string;
  readonly claim: string;
  readonly trace: RequestTrace;
}

interface Parts {
  readonly store: ReplayStore;
  readonly upstream: UpstreamApi;
  readonly clock: Clock;
  /** The longest that a refresh may take, so also the longest wait for an abandoned claim. */
  readonly signInMs: number;
  readonly lifetimes: RecordLifetimes;
}

export class RefreshClaims {
  readonly #parts: Parts;
  /** The claims that this process made for its running refreshes, by token hash. The store may have lost a claim. */
  readonly #claimed = new Map<string, string>();
  /** Sign-outs during these refreshes, kept here because the store may evict them. */
  readonly #ended = new Map<string, string>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  isRefreshing(key: string): boolean {
    return this.#claimed.has(key);
  }

  /** Notes a sign-out if this process is refreshing the token. */
  noteEnd(key: string, ended: string): void {
    if (this.#claimed.has(key)) this.#ended.set(key, ended);
  }

  forgetEnd(key: string): void {
    this.#ended.delete(key);
  }

  /** Returns the recorded outcome, waiting if necessary; undefined when this process has claimed the refresh. */
  async claimOrWait(
    token: string,
    key: string,
    { trace, arrivedAt }: RefreshRequest,
  ): Promise<FoundOutcome | undefined> {
    const { clock } = this.#parts;
    const waitingSince = new Map<string, number>();
    for (;;) {
      const record = await this.#addClaim(key);
      if (record === undefined) return undefined;
      if (record.startsWith(CLAIMED)) {
        if (await this.#takeOverOrphan(key, record, waitingSince)) return undefined;
        trace.refresh = 'shared';
        await clock.sleep(POLL_MS);
      } else if (waitingSince.size > 0 || !isRepeatable(record, token, arrivedAt)) {
        return { record, hasWaited: waitingSince.size > 0 };
      } else if (await this.#takeOver(key, record)) {
        return undefined;
      }
    }
  }

  /**
   * Returns the existing record, or undefined when the claim was added. A claim of this process counts even if the
   * store has lost it.
   */
  async #addClaim(key: string): Promise<string | undefined> {
    const claim = newClaim();
    const record = this.#claimed.get(key) ?? (await this.#parts.store.add(key, claim, CLAIM_MS));
    if (record === undefined) this.#claimed.set(key, claim);
    return record;
  }

  /**
   * Takes over a claim that is older than any refresh: its process has crashed, or the claim was forged. Each claim is
   * timed by itself.
   */
  async #takeOverOrphan(key: string, record: string, waitingSince: Map<string, number>): Promise<boolean> {
    const { clock, signInMs, store } = this.#parts;
    const since = waitingSince.get(record) ?? clock.now();
    waitingSince.set(record, since);
    if (this.#claimed.has(key) || clock.now() < since + signInMs + store.lingerMs) return false;
    return this.#takeOver(key, record);
  }

  /** Replaces that record with a claim of this process; returns false when the record has changed. */
  async #takeOver(key: string, record: string): Promise<boolean> {
    const claim = newClaim();
    const isReplaced = await this.#parts.store.replace(key, record, claim, CLAIM_MS);
    if (isReplaced) this.#claimed.set(key, claim);
    return isReplaced;
  }

  /** Sends the claimed token to the upstream, and replaces the claim with a record of the outcome. */
  async refresh(refreshToken: string, key: string, trace: RequestTrace): Promise<RefreshOutcome> {
    const { upstream, clock } = this.#parts;
    trace.refresh = 'renewed';
    const claim = this.#claimed.get(key) ?? newClaim();
    this.#claimed.set(key, claim);
    const stop = clock.every(CLAIM_MS / 3, () => void this.#prolong(key, claim));
    try {
      const outcome = await upstream.refresh(refreshToken, trace);
      return await this.#settle(outcome, { refreshToken, key, claim, trace });
    } finally {
      stop();
      this.#claimed.delete(key);
      this.#ended.delete(key);
    }
  }

  /** Adds the claim again when the store has lost it, and notes a sign-out that has replaced it. */
  async #prolong(key: string, claim: string): Promise<void> {
    if (await this.#parts.store.replace(key, claim, claim, CLAIM_MS)) return;
    if (!this.#claimed.has(key) || this.#ended.has(key)) return;
    const found = await this.#parts.store.add(key, claim, CLAIM_MS);
    if (isEnded(found) && this.#claimed.has(key)) this.#ended.set(key, found);
  }

  async #settle(
    outcome: RefreshOutcome,
    { refreshToken, key, claim, trace }: Claimed,
  ): Promise<RefreshOutcome> {
    const { store, upstream, clock, lifetimes } = this.#parts;
    const record = recordOf(outcome, refreshToken, clock.now());
    const isRotated = outcome.kind === 'renewed' && isSpent(refreshToken, outcome.pair);
    const lifetimeMs = isRotated ? Math.max(lifetimes.keepMs, store.lingerMs) : store.lingerMs;
    // Sent in parallel with the record, so that it adds no round trip.
    const marked =
      outcome.kind === 'renewed' &&
      store.markIssued(refreshTokenHash(outcome.pair.refreshToken), lifetimes.issuedMs);
    const ended = this.#ended.get(key);
    const isKept = !ended && (await store.replace(key, claim, record, lifetimeMs));
    await marked;
    if (isKept) return outcome;

    // The claim is gone: the session was signed out, or the store lost the claim and another process refreshed too.
    const found = ended ?? (await store.add(key, record, lifetimeMs));
    if (isEnded(found)) {
      if (outcome.kind === 'renewed') {
        // The refresh spent the token, so its sign-out is kept in full: the upstream may fail to sign out the new pair.
        await store.end(key, found, lifetimes.signOut, true);
        await upstream.signOut(outcome.pair, trace).catch(() => {});
      }
      return outcomeOf(found);
    }
    const theirs = decryptSuccessor(found, refreshToken);
    if (outcome.kind !== 'renewed') {
      return theirs ? { kind: 'renewed', pair: replayed(theirs, clock.now()) } : outcome;
    }
    if (found !== undefined && !theirs) await store.replace(key, found, record, lifetimeMs);
    return outcome;
  }
}

function newClaim(): string {
  return CLAIMED + crypto.randomUUID();
}

/** Whether the token may be refreshed again: the upstream was unreachable, or it does not rotate this token. */
function isRepeatable(record: string, token: string, arrivedAt: number): boolean {
  const successor = decryptSuccessor(record, token);
  if (!successor) return record === UNREACHABLE;
  return !isSpent(token, successor) && arrivedAt > successor.renewedAt;
}
