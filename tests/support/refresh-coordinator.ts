/** The coordination of refreshes as a gateway puts it together, without the gateway. */

import { Admission } from '../../src/gateway/http/admission/admission.ts';
import { Budget } from '../../src/gateway/http/admission/budget.ts';
import { RequestRecord } from '../../src/gateway/record/request-record.ts';
import type { Clock } from '../../src/gateway/refresh/clock.ts';
import { RefreshCoordinator } from '../../src/gateway/refresh/coordinator.ts';
import type { Fact, ReplayStore } from '../../src/gateway/refresh/store.ts';
import type { Environment } from '../../src/gateway/settings/environment-reader.ts';
import type { TokenPair } from '../../src/gateway/upstream/token-pair.ts';
import { type RefreshVerdict, UpstreamApi } from '../../src/gateway/upstream/upstream-api.ts';
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

/** Remembers the refresh tokens with which it was asked to refresh and to sign out. */
export class StubUpstream {
  readonly refreshed: string[] = [];
  readonly signedOut: string[] = [];
  /** What the next refreshes get. */
  verdict: () => RefreshVerdict | Promise<RefreshVerdict> = () => renewed(2);

  /** A coordinator that asks this upstream. */
  coordinator(store: ReplayStore, clock: Clock, environment: Environment = {}): RefreshCoordinator {
    const addresses = { UPSTREAM_URL: 'http://upstream.test', IDP_URL: 'http://idp.test' };
    const settings = testSettings({ ...addresses, ...environment });
    const calls = {
      refresh: async (refreshToken: string) => {
        this.refreshed.push(refreshToken);
        return this.verdict();
      },
      signOut: async ({ refreshToken }: Pick<TokenPair, 'refreshToken'>) => {
        this.signedOut.push(refreshToken);
        return 204;
      },
    };
    const api = Object.assign(new UpstreamApi(settings, new Admission(settings)), calls);
    return new RefreshCoordinator(settings, store, api, clock);
  }
}

/** The pair with this refresh token, such as `t2`. */
export function renewed(generation: number, expiresInSeconds = 900): RefreshVerdict {
  const pair = { accessToken: `a${generation}`, refreshToken: `t${generation}`, expiresInSeconds };
  return { kind: 'renewed', pair };
}

/** A clock that a test advances; what is due then runs in its order. */
export class ManualClock implements Clock {
  readonly #timers = new Set<{ at: number; readonly everyMs: number; readonly work: () => void }>();
  #now = Date.UTC(2030, 0, 1);

  /** Bound, so that it can be passed on. */
  readonly now = (): number => this.#now;

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
