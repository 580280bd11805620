/** The coordination of refreshes as a gateway puts it together, without the gateway. */

import { Admission } from '../../src/gateway/http/admission/admission.ts';
import { Budget } from '../../src/gateway/http/admission/budget.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import { type Clock, systemClock } from '../../src/gateway/refresh/clock.ts';
import { RefreshCoordinator } from '../../src/gateway/refresh/coordinator.ts';
import { RedisConnection, type RedisObserver } from '../../src/gateway/refresh/redis-connection.ts';
import { RedisReplayStore } from '../../src/gateway/refresh/redis-store.ts';
import type { Fact, ReplayStore } from '../../src/gateway/refresh/store.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import { UpstreamApi } from '../../src/gateway/upstream/upstream-api.ts';
import type { ScriptedUpstream } from './scripted-upstream.ts';
import { testSettings } from './world.ts';

/** What tests write to a store. */
export const LEASE: Fact = { kind: 'leased', detail: 'forged' };
export const RENEWAL: Fact = { kind: 'renewed', detail: 'x' };
export const REJECTED: Fact = { kind: 'rejected', detail: '' };
export const ENDED: Fact = { kind: 'ended', detail: '0' };

/** A ledger in which no test runs out of memory. */
export function newLedger(): Budget {
  return new Budget(1024 ** 3);
}

export function newRequestRecord(): RequestRecord {
  return new RequestRecord(new Request('http://gateway.test'));
}

export function refreshCoordinatorOver(
  store: ReplayStore,
  { upstreamUrl, identityProviderUrl }: ScriptedUpstream,
  environment: Environment = {},
  clock: Clock = systemClock,
): RefreshCoordinator {
  const addresses = { UPSTREAM_URL: upstreamUrl, IDP_URL: identityProviderUrl };
  const settings = testSettings({ ...addresses, ...environment });
  return new RefreshCoordinator(settings, store, new UpstreamApi(settings, new Admission(settings)), clock);
}

/** Lets every command take its time, so that a busy machine is not taken for a Redis that is down. */
export const PATIENT: Clock = { ...systemClock, every: () => () => {} };

export function redisStoreAt(
  url: string,
  observer: Partial<RedisObserver> = {},
  clock: Clock = systemClock,
): RedisReplayStore {
  return new RedisReplayStore(
    new RedisConnection(url, { onDown: () => {}, onUp: () => {}, ...observer }, clock),
    newLedger(),
    () => clock.now(),
  );
}

/** A clock that a test advances; what is due then runs in its order. */
export class ManualClock implements Clock {
  readonly #timers = new Set<{ at: number; readonly everyMs: number; readonly work: () => void }>();
  #now = Date.now();

  now(): number {
    return this.#now;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.every(ms, () => {
        stop();
        resolve();
      });
    });
  }

  every(everyMs: number, work: () => void): () => void {
    const timer = { at: this.#now + everyMs, everyMs, work };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** How many intervals and sleeps have not ended. */
  get running(): number {
    return this.#timers.size;
  }

  /** Lets this time pass, and the work of each moment do its input and output. */
  async advance(ms: number): Promise<void> {
    for (const end = this.#now + ms; this.#now < end; ) {
      this.#now = Math.min(end, ...[...this.#timers].map(({ at }) => at));
      for (const timer of this.#timers) {
        if (timer.at > this.#now) continue;
        timer.at += timer.everyMs;
        timer.work();
      }
      await Bun.sleep(0);
    }
  }
}
