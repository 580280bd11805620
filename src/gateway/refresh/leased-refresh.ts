/** Sends a refresh token to the upstream under a lease, so that no other request or instance sends it as well. */

import type { RequestRecord } from '../record/request-record.ts';
import type { RefreshVerdict } from '../upstream/upstream-api.ts';
import { ISSUED, LEASE_MS, markKey, type RefreshParts, recordKey, recordOf } from './record.ts';
import type { Fact, Kept } from './store.ts';

const POLL_MS = 40;

/** A verdict of the upstream, or a record that each request has to judge for itself. */
export type Outcome =
  | { readonly verdict: RefreshVerdict; readonly record?: undefined }
  | { readonly verdict?: undefined; readonly record: Kept };

export class LeasedRefreshes {
  readonly #parts: RefreshParts;
  readonly #inFlight = new Set<Promise<Outcome>>();
  /** By refresh token, until the verdict is there: the session may be signed out before the next request comes. */
  readonly #shared = new Map<string, Promise<Outcome>>();

  constructor(parts: RefreshParts) {
    this.#parts = parts;
  }

  /** Resolves when nothing is in flight. An interruption would lose the new pair after the old token is spent. */
  async settled(): Promise<void> {
    while (this.#inFlight.size) await Promise.allSettled(this.#inFlight);
  }

  /** Refreshes the token, or returns what is on record of it. */
  async refresh(refreshToken: string, request: RequestRecord): Promise<Outcome> {
    const joined = await this.#shared.get(refreshToken);
    if (joined?.verdict) {
      request.refresh = 'shared';
      return joined;
    }
    // A record that was read before this request came is out of date. What is shared now has begun after that.
    return this.#shared.get(refreshToken) ?? this.#begin(refreshToken, request);
  }

  #begin(refreshToken: string, request: RequestRecord): Promise<Outcome> {
    const outcome = this.#findOrSend(refreshToken, request).finally(() => {
      this.#inFlight.delete(outcome);
      if (this.#shared.get(refreshToken) === outcome) this.#shared.delete(refreshToken);
    });
    this.#inFlight.add(outcome);
    this.#shared.set(refreshToken, outcome);
    return outcome;
  }

  /** Waits while there is a lease, and sends the token when there is no record of it. */
  async #findOrSend(refreshToken: string, request: RequestRecord): Promise<Outcome> {
    const { store, clock, lifetimes } = this.#parts;
    const key = recordKey(refreshToken);
    const patientUntil = clock.now() + lifetimes.patienceMs;
    for (let hasWaited = false; clock.now() <= patientUntil; hasWaited = true) {
      if (hasWaited) {
        request.refresh = 'shared';
        await clock.sleep(POLL_MS);
      }
      const record = await store.get(key);
      if (record?.kind === 'leased') continue;
      const isRepeatable = record?.kind === 'unreachable' && !hasWaited;
      if (record && !isRepeatable) return { record };
      // Each lease is unique, so that a process can tell its own from another.
      const lease: Fact = { kind: 'leased', detail: crypto.randomUUID() };
      const { isWritten } = await store.swap(key, record, lease, LEASE_MS);
      if (isWritten) return this.#send(refreshToken, lease, request);
    }
    return { verdict: { kind: 'unreachable', cause: new Error('another instance keeps its lease') } };
  }

  async #send(refreshToken: string, lease: Fact, request: RequestRecord): Promise<Outcome> {
    const { store, upstream, clock, lifetimes } = this.#parts;
    const key = recordKey(refreshToken);
    request.refresh = 'renewed';
    const stop = clock.every(LEASE_MS / 3, () => void store.swap(key, lease, lease, LEASE_MS));
    try {
      const verdict = await upstream.refresh(refreshToken, request);
      this.#shared.delete(refreshToken);
      const pair = verdict.kind === 'renewed' ? verdict.pair : undefined;
      // Sent in parallel with the record, so that it adds no round trip.
      const marked = pair && this.markIssued(pair.refreshToken);
      const record = await this.#replaceLease(refreshToken, lease, verdict);
      await marked;
      if (!record) return { verdict };
      if (pair && record.kind === 'ended') {
        // The session was signed out while its refresh was in flight. Its token is spent now, and has to stay ended.
        await store.swap(key, record, record, lifetimes.endedMs);
        await upstream.signOut(pair, request).catch(() => {});
      }
      return { record };
    } finally {
      stop();
    }
  }

  /** Returns the record that counts instead of the verdict; undefined when the verdict has replaced the lease. */
  async #replaceLease(refreshToken: string, lease: Fact, verdict: RefreshVerdict): Promise<Kept | undefined> {
    const { store, lifetimes } = this.#parts;
    const to = await recordOf(verdict, refreshToken);
    for (let from: Fact | undefined = lease; ; ) {
      const swapped = await store.swap(recordKey(refreshToken), from, to, lifetimes[`${verdict.kind}Ms`]);
      if (swapped.isWritten) return undefined;
      const { before } = swapped;
      // The lease was lost. Another instance may have taken it, and has no pair yet or was refused.
      const hasNoPair = before?.kind === 'leased' || before?.kind === 'rejected';
      const isFree = before ? hasNoPair && to?.kind === 'renewed' : from !== undefined;
      if (!isFree) return before?.kind === 'leased' ? undefined : before;
      from = before;
    }
  }

  /** Marks a token as issued, for as long as a response may still bring it to a browser. */
  async markIssued(refreshToken: string): Promise<void> {
    const { store, lifetimes } = this.#parts;
    await store.swap(markKey(refreshToken), undefined, ISSUED, lifetimes.issuedMs);
  }
}
