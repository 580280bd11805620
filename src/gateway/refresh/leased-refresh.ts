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
  /** By refresh token, until the verdict is there: the session may be signed out before the next request comes. */
  readonly #shared = new Map<string, Promise<Outcome>>();

  constructor(parts: RefreshParts) {
    this.#parts = parts;
  }

  /** Refreshes the token, or returns what is on record of it. */
  async refresh(refreshToken: string, request: RequestRecord): Promise<Outcome> {
    for (let isSecond = false; ; isSecond = true) {
      const shared = this.#shared.get(refreshToken);
      if (!shared) return this.#begin(refreshToken, request);
      const outcome = await shared;
      // A record that was read before this request came is out of date. What is shared next has begun after that.
      if (!outcome.verdict && !isSecond) continue;
      request.refresh = 'shared';
      return outcome;
    }
  }

  #begin(refreshToken: string, request: RequestRecord): Promise<Outcome> {
    const outcome = this.#findOrSend(refreshToken, request).finally(() => {
      if (this.#shared.get(refreshToken) === outcome) this.#shared.delete(refreshToken);
    });
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
      if (record && (record.kind !== 'unreachable' || hasWaited)) return { record };
      // Each lease is unique, so that a process can tell its own from another.
      const lease: Fact = { kind: 'leased', detail: crypto.randomUUID() };
      const askedAt = clock.now();
      const { isWritten } = await store.swap(key, record, lease, LEASE_MS);
      // A process that has stood still meanwhile may have lost it again.
      if (!isWritten || clock.now() - askedAt >= LEASE_MS) continue;
      const outcome = await this.#send(refreshToken, lease, request);
      if (outcome.record?.kind !== 'leased') return outcome;
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
      const [record] = await Promise.all([this.#replaceLease(refreshToken, lease, verdict), marked]);
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

  /** Returns the record that counts instead, by the table in README.md; undefined when the verdict has replaced the lease. */
  async #replaceLease(refreshToken: string, lease: Fact, verdict: RefreshVerdict): Promise<Kept | undefined> {
    const { store, lifetimes } = this.#parts;
    const lifetimeMs = lifetimes[`${verdict.kind}Ms`];
    const to = await recordOf(verdict, refreshToken);
    for (let from: Fact | undefined = lease; ; ) {
      const { isWritten, before } = await store.swap(recordKey(refreshToken), from, to, lifetimeMs);
      if (isWritten) return undefined;
      // The lease was lost, and another instance may have taken it.
      const isFree = before ? before.kind === 'unreachable' : from !== undefined;
      const hasNoPair = before?.kind === 'leased' || before?.kind === 'rejected';
      if (!isFree && !(hasNoPair && verdict.kind === 'renewed')) return before;
      from = before;
    }
  }

  /** Marks a token as issued, for as long as a response may still bring it to a browser. */
  async markIssued(refreshToken: string): Promise<void> {
    const { store, lifetimes } = this.#parts;
    await store.swap(markKey(refreshToken), undefined, ISSUED, lifetimes.issuedMs);
  }
}
