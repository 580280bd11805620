/** The coordination of refreshes as a gateway puts it together, without the gateway. */

import { Admission } from '../../src/gateway/admission/admission.ts';
import { Budget } from '../../src/gateway/admission/budget.ts';
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
export const UNREACHABLE: Fact = { kind: 'unreachable', detail: '' };
export const REJECTED: Fact = { kind: 'rejected', detail: '' };
export const ENDED: Fact = { kind: 'ended', detail: '0' };

/** A ledger in which no test runs out of memory. */
export function newLedger(): Budget {
  return new Budget(1024 ** 3);
}

/** Remembers the refresh tokens with which it was asked to refresh and to sign out. */
export class StubUpstream {
  readonly refreshed: string[] = [];
  readonly signedOut: string[] = [];
  /** What the next refreshes get. */
  verdict: () => RefreshVerdict | Promise<RefreshVerdict> = () => renewed(2);

  /** A coordinator that asks this upstream. */
  coordinator(store: ReplayStore, clock: Clock, environment: Environment = {}): RefreshCoordinator {
    const settings = testSettings(environment);
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
