/** Processes that are broken, one for each law and for each order of events that once signed somebody out. */

import { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import { type Aged, get, swap } from '../../../src/gateway/refresh/redis-commands.ts';
import type { ReplayStore } from '../../../src/gateway/refresh/store.ts';
import { settings } from './conclusions.ts';
import type { Process } from './schedule.ts';

type Refresh = Process['shared']['refresh'];

/** A process whose refreshes end so, given the real one. */
const refreshing =
  (refresh: (real: Refresh, process: Process) => Refresh) =>
  (process: Process): void => {
    const { shared } = process;
    Object.assign(shared, { refresh: refresh(shared.refresh.bind(shared), process) });
  };
const always = (kind: 'rejected' | 'unreachable') =>
  refreshing(() => async () => ({ kind, cause: 'broken' }));
/** From the second request with a token. */
const repeating = (again: (first: ReturnType<Refresh>) => ReturnType<Refresh>) =>
  refreshing((real) => {
    const first = new Map<string, ReturnType<Refresh>>();
    return (token, ...request) => {
      const known = first.get(token);
      if (known) return again(known);
      const outcome = real(token, ...request);
      first.set(token, outcome);
      return outcome;
    };
  });
const counting = (refreshTokenReused: 'late' | undefined) =>
  refreshing((real) => async (token, record, arrivedAt) => {
    const outcome = await real(token, record, arrivedAt);
    Object.assign(record, { refreshTokenReused });
    return outcome;
  });

/** It forgets how a token has ended. */
const forgetting = (lastsMs: number) => (process: Process) => {
  const { shared, clock } = process;
  const end = shared.end.bind(shared);
  const endedAt = new Map<string, number>();
  Object.assign(shared, {
    end(...ending: Parameters<typeof end>) {
      endedAt.set(ending[0], clock.now());
      return end(...ending);
    },
  });
  refreshing((real) => async (token, ...request) => {
    if (clock.now() > (endedAt.get(token) ?? Number.POSITIVE_INFINITY) + lastsMs)
      await shared.forgetEnd(token);
    return real(token, ...request);
  })(process);
};

/** It signs nobody out at the upstream with a token that had ended here. */
function signingOutOnce({ shared, upstream }: Process): void {
  const end = shared.end.bind(shared);
  const signOut = upstream.signOut.bind(upstream);
  const ended = new Set<string>();
  Object.assign(shared, {
    async end(...ending: Parameters<typeof end>) {
      const found = await end(...ending);
      if (found.hadEnded) ended.add(ending[0]);
      return found;
    },
  });
  Object.assign(upstream, {
    async signOut(...pair: Parameters<typeof signOut>) {
      return ended.has(pair[0].refreshToken) ? 204 : signOut(...pair);
    },
  });
}

/** It has nothing but Redis. */
function withoutMemory(process: Process): void {
  const { connection, clock, upstream } = process;
  const kept = (aged: Aged | undefined) => aged && { ...aged, writtenAt: clock.now() - aged.ageMs };
  const store: ReplayStore = {
    get: async (key) => kept(await connection.ask((redis) => get(redis, key))),
    async swap(key, from, to, lifetimeMs = 0) {
      const swapped = await connection.ask((redis) => swap(redis, key, from, to, lifetimeMs, false));
      return { isWritten: swapped?.isWritten ?? true, before: kept(swapped?.before) };
    },
    keepHere: async () => true,
  };
  Object.assign(process, { shared: new RefreshCoordinator(settings, store, upstream, clock) });
}

const clearing = (kind: 'ended' | 'rejected') =>
  refreshing((real) => async (...request) => {
    const outcome = await real(...request);
    return outcome.kind === kind ? { ...outcome, clearsCookies: true } : outcome;
  });

interface Broken {
  /** The sentence that it contradicts begins so. */
  readonly contradicts: string;
  readonly plan: string;
  readonly change: (process: Process) => void;
}

const REPLACED = 'a request, and a sign-in in place of its session';
const SHARED = 'two requests and a sign-out';
const LATE = 'a copy of the old cookies, after their window';
const OLD = '(h) a response to an older request';
const TOLD = '(d) a sign-out with both cookies tells';

export const BROKEN: Readonly<Record<string, Broken>> = {
  'never answers': {
    contradicts: 'every request ends',
    plan: SHARED,
    change: refreshing(() => () => new Promise(() => {})),
  },
  'refreshes for each request': {
    contradicts: '(a) a refresh token that is spent is sent once',
    plan: SHARED,
    change: refreshing(
      (_, { upstream }) =>
        (token, record) =>
          upstream.refresh(token, record),
    ),
  },
  'refreshes twice': {
    contradicts: '(b) a pair whose access token is good',
    plan: LATE,
    change: refreshing((real) => async (token, ...request) => {
      const outcome = await real(token, ...request);
      return outcome.kind === 'renewed' ? real(outcome.pair.refreshToken, ...request) : outcome;
    }),
  },
  'replays nothing': {
    contradicts: '(b) a spent token yields the newest pair',
    plan: 'two requests at an instance that stands still',
    change: repeating(async () => ({ kind: 'rejected' })),
  },
  'does not know that a response is on its way': {
    contradicts: '(a) a refresh token that is spent is sent once',
    plan: 'a response that takes minutes, and a request meanwhile',
    change: ({ shared }) => void Object.assign(shared.presented, { expect: () => () => {} }),
  },
  'replays for ever': {
    contradicts: '(c) a spent token reaches the upstream',
    plan: LATE,
    change: repeating((first) => first),
  },
  'counts no reuse': {
    contradicts: '(c) a spent token that is sent again',
    plan: LATE,
    change: counting(undefined),
  },
  'counts every refresh as a reuse': {
    contradicts: '(c) only what was sent again',
    plan: SHARED,
    change: counting('late'),
  },
  'rejects its own pair': {
    contradicts: 'a pair that an instance gets',
    plan: SHARED,
    change: refreshing((real) => async (...request) => {
      const outcome = await real(...request);
      return outcome.kind === 'renewed' ? { kind: 'rejected' } : outcome;
    }),
  },
  'drops a pair that comes after its lease': {
    contradicts: 'a pair that an instance gets',
    plan: 'an instance that stands still while another one gets no verdict',
    change: refreshing((real, { clock }) => async (...request) => {
      const askedAt = clock.now();
      const outcome = await real(...request);
      const isDropped = outcome.kind === 'renewed' && clock.now() - askedAt > 3000;
      return isDropped ? { kind: 'unreachable', cause: 'dropped' } : outcome;
    }),
  },
  'rejects everybody': {
    contradicts: 'a request is rejected only',
    plan: SHARED,
    change: always('rejected'),
  },
  'ends everybody': {
    contradicts: 'a request is ended only',
    plan: SHARED,
    change: refreshing(() => async () => ({ kind: 'ended', clearsCookies: true })),
  },
  'reaches nobody': { contradicts: 'no request finds', plan: SHARED, change: always('unreachable') },
  'ends nothing': {
    contradicts: '(d) after a sign-out no token',
    plan: SHARED,
    change: ({ shared }) => void Object.assign(shared, { end: async () => ({ hadEnded: false }) }),
  },
  'remembers a sign-out for 30 s': {
    contradicts: '(d) after a sign-out no token',
    plan: 'a request whose first call takes a minute, and a sign-out',
    change: forgetting(30_000),
  },
  'signs no late pair out': {
    contradicts: '(d) a pair that arrives after the sign-out',
    plan: SHARED,
    change: ({ upstream }) => void Object.assign(upstream, { signOut: async () => 204 }),
  },
  'does not repeat a sign-out that has failed': {
    contradicts: TOLD,
    plan: 'two sign-outs, of which the first one does not reach the upstream',
    change: signingOutOnce,
  },
  'does not sign out what a sign-in has ended': {
    contradicts: TOLD,
    plan: 'a sign-in whose response is lost, and a sign-out',
    change: signingOutOnce,
  },
  'sets its own pair': {
    contradicts: '(e) a response sets the newest pair',
    plan: 'a response that takes a minute, and a sign-out',
    change: ({ shared }) => void Object.assign(shared, { newest: async (pair: unknown) => pair }),
  },
  'has no memory': {
    contradicts: '(a) a refresh token that is spent is sent once',
    plan: 'a copy of the old cookies while Redis is away',
    change: withoutMemory,
  },
  'waits for longer than a lease': {
    contradicts: '(g) nobody waits',
    plan: SHARED,
    change: refreshing((real, { clock }) => async (...request) => {
      await clock.sleep(4000);
      return real(...request);
    }),
  },
  'clears the cookies of a sign-in in its place': {
    contradicts: OLD,
    plan: REPLACED,
    change: clearing('ended'),
  },
  'clears those of a sign-in after a refusal': {
    contradicts: OLD,
    plan: 'a request, and a sign-in after its session was rejected',
    change: clearing('rejected'),
  },
};
