/** Refreshes a token under a claim in the replay store, so that no other request or instance refreshes it as well. */

import type { RequestRecord } from '../record/request-record.ts';
import type { RefreshVerdict, UpstreamApi } from '../upstream/upstream-api.ts';
import type { Clock } from './clock.ts';
import {
  type Claimed,
  decryptSuccessor,
  type Ended,
  isSpent,
  newClaim,
  type RefreshOutcome,
  recordOf,
  replayed,
  type TokenRecord,
} from './record.ts';
import { type KeptPair, refreshTokenHash } from './sealed-pair.ts';
import { CLAIM_MS, type RecordLifetimes, type ReplayStore } from './store.ts';

const POLL_MS = 40;

/** A request that needs a refresh. */
export interface RefreshRequest {
  /** The token that the client presented. */
  readonly refreshToken: string;
  readonly record: RequestRecord;
  /** In milliseconds since the epoch. */
  readonly arrivedAt: number;
}

/** A refresh that this process makes. */
interface Running {
  readonly refreshToken: string;
  readonly key: string;
  readonly claim: Claimed;
  /** A sign-out during the refresh, kept here because the store may evict it. */
  ended: Ended | undefined;
}

/** What a request does next: make the refresh that it has claimed, or go by the record that it has found. */
type Turn =
  | { readonly found: undefined; readonly running: Running }
  /** `successor`: the pair in the record, if it has one. `hasWaited`: whether the request waited for this refresh. */
  | { readonly found: TokenRecord; readonly successor: KeptPair | undefined; readonly hasWaited: boolean };

export class RefreshClaims {
  readonly #store: ReplayStore;
  readonly #upstream: UpstreamApi;
  readonly #clock: Clock;
  readonly #lifetimes: RecordLifetimes;
  /** By token hash. The claim of a running refresh counts even if the store has lost it. */
  readonly #running = new Map<string, Running>();

  constructor(store: ReplayStore, upstream: UpstreamApi, clock: Clock, lifetimes: RecordLifetimes) {
    this.#store = store;
    this.#upstream = upstream;
    this.#clock = clock;
    this.#lifetimes = lifetimes;
  }

  isRefreshing(key: string): boolean {
    return this.#running.has(key);
  }

  /** Notes at the running refresh of this token, if there is one, whether the session was signed out. */
  noteEnd(key: string, ended: Ended | undefined): void {
    const running = this.#running.get(key);
    if (running) running.ended = ended;
  }

  /**
   * Claims the refresh, or waits until another request or instance has made it, and notes that in the record.
   *
   * @param onRenewed called as soon as the token is known to be renewed, before its successor is decrypted
   */
  async claimOrWait(
    refreshToken: string,
    { record, arrivedAt }: RefreshRequest,
    onRenewed: () => void,
  ): Promise<Turn> {
    const key = refreshTokenHash(refreshToken);
    /** When this request first saw each claim, by the claim's id. */
    const waitingSince = new Map<string, number>();
    for (;;) {
      const claim = newClaim();
      const running = { refreshToken, key, claim, ended: undefined };
      const found = await this.#addOrFind(key, claim, onRenewed);
      if (!found) return this.#claimed(running);
      const hasWaited = waitingSince.size > 0;
      if (found.kind === 'claimed') {
        const since = waitingSince.get(found.by) ?? this.#clock.now();
        waitingSince.set(found.by, since);
        if (!this.#isAbandoned(key, since)) {
          record.refresh = 'shared';
          await this.#clock.sleep(POLL_MS);
          continue;
        }
      } else {
        const successor = await decryptSuccessor(found, refreshToken);
        if (hasWaited || !isRepeatable(found, successor, refreshToken, arrivedAt)) {
          return { found, successor, hasWaited };
        }
      }
      if (await this.#store.replace(key, found, claim, CLAIM_MS)) return this.#claimed(running);
    }
  }

  /** Returns undefined when the claim was added, otherwise the existing record. */
  async #addOrFind(key: string, claim: Claimed, onRenewed: () => void): Promise<TokenRecord | undefined> {
    const found = this.#running.get(key)?.claim ?? (await this.#store.add(key, claim, CLAIM_MS));
    if (found?.kind === 'renewed') onRenewed();
    return found;
  }

  /** A claim that is older than any refresh is abandoned: its process has crashed, or the claim was forged. */
  #isAbandoned(key: string, since: number): boolean {
    const abandonedAt = since + this.#lifetimes.refreshMs + this.#store.lingerMs;
    return !this.#running.has(key) && this.#clock.now() >= abandonedAt;
  }

  #claimed(running: Running): Turn {
    this.#running.set(running.key, running);
    return { found: undefined, running };
  }

  /**
   * Sends the claimed token to the upstream, and replaces the claim with a record of the outcome.
   *
   * @param onOutcome called before the record is written: a later request has to read it, because a sign-out may follow
   */
  async refresh(running: Running, record: RequestRecord, onOutcome: () => void): Promise<RefreshOutcome> {
    record.refresh = 'renewed';
    const stop = this.#clock.every(CLAIM_MS / 3, () => void this.#prolong(running));
    try {
      const outcome = await this.#upstream.refresh(running.refreshToken, record);
      onOutcome();
      return await this.#settle(outcome, running, record);
    } finally {
      stop();
      this.#running.delete(running.key);
    }
  }

  /** Adds the claim again when the store has lost it, and notes a sign-out that has replaced it. */
  async #prolong(running: Running): Promise<void> {
    const { key, claim } = running;
    if (await this.#store.replace(key, claim, claim, CLAIM_MS)) return;
    if (this.#running.get(key) !== running || running.ended) return;
    const found = await this.#store.add(key, claim, CLAIM_MS);
    if (found?.kind === 'ended') running.ended = found;
  }

  async #settle(outcome: RefreshVerdict, running: Running, request: RequestRecord): Promise<RefreshOutcome> {
    const { refreshToken, key, claim } = running;
    const { keepMs, issuedMs, signOut } = this.#lifetimes;
    const record = await recordOf(outcome, refreshToken, this.#clock.now());
    const pair = outcome.kind === 'renewed' ? outcome.pair : undefined;
    const isRotated = pair !== undefined && isSpent(refreshToken, pair);
    const lifetimeMs = Math.max(isRotated ? keepMs : 0, this.#store.lingerMs);
    // Sent in parallel with the record, so that it adds no round trip.
    const marked = pair && this.#store.markIssued(refreshTokenHash(pair.refreshToken), issuedMs);
    const isKept = !running.ended && (await this.#store.replace(key, claim, record, lifetimeMs));
    await marked;
    if (isKept) return outcome;

    // The claim is gone: the session was signed out, or the store lost the claim and another process refreshed too.
    const found = running.ended ?? (await this.#store.add(key, record, lifetimeMs));
    if (found?.kind === 'ended') {
      if (pair) {
        // The refresh spent the token, so its sign-out is kept in full: the upstream may fail to sign out the new pair.
        await this.#store.end(key, found, signOut, true);
        await this.#upstream.signOut(pair, request).catch(() => {});
      }
      return found;
    }
    const theirs = await decryptSuccessor(found, refreshToken);
    if (!pair) return theirs ? { kind: 'renewed', pair: replayed(theirs, this.#clock.now()) } : outcome;
    if (found && !theirs) await this.#store.replace(key, found, record, lifetimeMs);
    return outcome;
  }
}

/** Whether the token may be refreshed again: the upstream was unreachable, or it does not rotate this token. */
function isRepeatable(
  record: TokenRecord,
  successor: KeptPair | undefined,
  token: string,
  arrivedAt: number,
): boolean {
  if (!successor) return record.kind === 'unreachable';
  return !isSpent(token, successor) && arrivedAt > successor.renewedAt;
}
