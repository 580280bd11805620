/** Processes that are broken, one for each law and for each order of events that once signed somebody out. */

import { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import { type Aged, get, swap } from '../../../src/gateway/refresh/redis-commands.ts';
import type { ReplayStore } from '../../../src/gateway/refresh/store.ts';
import { settings } from './history.ts';
import type { Process } from './schedule.ts';

type Refresh = Process['shared']['refresh'];
type Outcome = Awaited<ReturnType<Refresh>>;
type Change = (process: Process) => void;

/** A process whose refreshes end so, given the real one. */
const refreshing =
  (refresh: (real: Refresh, process: Process) => Refresh): Change =>
  (process) => {
    const { shared } = process;
    Object.assign(shared, { refresh: refresh(shared.refresh.bind(shared), process) });
  };
const always = (outcome: Outcome) => refreshing(() => async () => outcome);
const altering = (alter: (outcome: Outcome, record: Parameters<Refresh>[1]) => Outcome) =>
  refreshing(
    (real) => async (token, record, arrivedAt) => alter(await real(token, record, arrivedAt), record),
  );
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
  altering((outcome, record) => {
    Object.assign(record, { refreshTokenReused });
    return outcome;
  });
const clearing = (kind: 'ended' | 'rejected') =>
  altering((outcome) => (outcome.kind === kind ? { ...outcome, clearsCookies: true } : outcome));

/** Calls `ended` when a session has ended at this process. */
function onEnd({ shared }: Process, ended: (token: string, hadEnded: boolean) => unknown): void {
  const end = shared.end.bind(shared);
  Object.assign(shared, {
    async end(...ending: Parameters<typeof end>) {
      const found = await end(...ending);
      ended(ending[0], found.hadEnded);
      return found;
    },
  });
}

/** It forgets how a token has ended. */
const forgetting =
  (lastsMs: number): Change =>
  (process) => {
    const { shared, clock } = process;
    const endedAt = new Map<string, number>();
    onEnd(process, (token) => endedAt.set(token, clock.now()));
    refreshing((real) => async (token, ...request) => {
      if (clock.now() > (endedAt.get(token) ?? Number.POSITIVE_INFINITY) + lastsMs)
        await shared.forgetEnd(token);
      return real(token, ...request);
    })(process);
  };

/** It signs nobody out at the upstream with a token that had ended here. */
const signingOutOnce: Change = (process) => {
  const { upstream } = process;
  const signOut = upstream.signOut.bind(upstream);
  const ended = new Set<string>();
  onEnd(process, (token, hadEnded) => hadEnded && ended.add(token));
  Object.assign(upstream, {
    async signOut(...pair: Parameters<typeof signOut>) {
      return ended.has(pair[0].refreshToken) ? 204 : signOut(...pair);
    },
  });
};

/** It has nothing but Redis. */
const withoutMemory: Change = (process) => {
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
};

interface Broken {
  readonly change: Change;
  /** The sentence that it contradicts begins so. */
  readonly contradicts: string;
  /** In which it does so; that of two requests and a sign-out unless given. */
  readonly plan?: string;
}

const LATE = 'a copy of the old cookies, after their window';

export const BROKEN: Readonly<Record<string, Broken>> = {
  'never answers': {
    change: refreshing(() => () => new Promise(() => {})),
    contradicts: 'every request ends',
  },
  'refreshes for each request': {
    change: refreshing(
      (_, { upstream }) =>
        (...request) =>
          upstream.refresh(request[0], request[1]),
    ),
    contradicts: '(a) a refresh token that is spent is sent once',
  },
  'refreshes twice': {
    change: refreshing((real) => async (token, ...request) => {
      const outcome = await real(token, ...request);
      return outcome.kind === 'renewed' ? real(outcome.pair.refreshToken, ...request) : outcome;
    }),
    contradicts: '(b) a pair whose access token is good',
    plan: LATE,
  },
  'replays nothing': {
    change: repeating(async () => ({ kind: 'rejected' })),
    contradicts: '(b) a spent token yields the newest pair',
    plan: 'two requests at an instance that stands still',
  },
  'does not know that a response is on its way': {
    change: ({ shared }) => Object.assign(shared.presented, { expect: () => () => {} }),
    contradicts: '(a) a refresh token that is spent is sent once',
    plan: 'a response that takes minutes, and a request meanwhile',
  },
  'replays for ever': {
    change: repeating((first) => first),
    contradicts: '(c) a spent token reaches the upstream',
    plan: LATE,
  },
  'counts no reuse': {
    change: counting(undefined),
    contradicts: '(c) a spent token that is sent again',
    plan: LATE,
  },
  'counts every refresh as a reuse': {
    change: counting('late'),
    contradicts: '(c) only what was sent again',
  },
  'rejects its own pair': {
    change: altering((outcome) => (outcome.kind === 'renewed' ? { kind: 'rejected' } : outcome)),
    contradicts: 'a pair that an instance gets',
  },
  'drops a pair that comes after its lease': {
    change: refreshing((real, { clock }) => async (...request) => {
      const askedAt = clock.now();
      const outcome = await real(...request);
      const isDropped = outcome.kind === 'renewed' && clock.now() - askedAt > 3000;
      return isDropped ? { kind: 'unreachable', cause: 'dropped' } : outcome;
    }),
    contradicts: 'a pair that an instance gets',
    plan: 'an instance that stands still while another one gets no verdict',
  },
  'rejects everybody': { change: always({ kind: 'rejected' }), contradicts: 'a request is rejected only' },
  'ends everybody': {
    change: always({ kind: 'ended', clearsCookies: true }),
    contradicts: 'a request is ended only',
  },
  'reaches nobody': {
    change: always({ kind: 'unreachable', cause: 'broken' }),
    contradicts: 'no request finds',
  },
  'ends nothing': {
    change: ({ shared }) => Object.assign(shared, { end: async () => ({ hadEnded: false }) }),
    contradicts: '(d) after a sign-out no token',
  },
  'remembers a sign-out for 30 s': {
    change: forgetting(30_000),
    contradicts: '(d) after a sign-out no token',
    plan: 'a request whose first call takes a minute, and a sign-out',
  },
  'signs no late pair out': {
    change: ({ upstream }) => Object.assign(upstream, { signOut: async () => 204 }),
    contradicts: '(d) a pair that arrives after the sign-out',
  },
  'ends a session by a sign-in as by a sign-out': {
    change({ shared }) {
      const end = shared.end.bind(shared);
      Object.assign(shared, { end: (token: string) => end(token) });
    },
    contradicts: '(d) a sign-in in the place of a session',
    plan: 'a request, and a sign-in in place of its session',
  },
  'does not repeat a sign-out that has failed': {
    change: signingOutOnce,
    contradicts: '(d) a sign-out with both cookies tells',
    plan: 'two sign-outs, of which the first one does not reach the upstream',
  },
  'does not sign out what a sign-in has ended': {
    change: signingOutOnce,
    contradicts: '(d) a sign-out with both cookies tells',
    plan: 'a sign-in whose response is lost, and a sign-out',
  },
  'sets its own pair': {
    change: ({ shared }) => Object.assign(shared, { newest: async (pair: unknown) => pair }),
    contradicts: '(e) a response sets the newest pair',
    plan: 'a response that takes a minute, and a sign-out',
  },
  'has no memory': {
    change: withoutMemory,
    contradicts: '(a) a refresh token that is spent is sent once',
    plan: 'a copy of the old cookies while Redis is away',
  },
  'waits for longer than a lease': {
    change: refreshing((real, { clock }) => async (...request) => {
      await clock.sleep(4000);
      return real(...request);
    }),
    contradicts: '(g) nobody waits',
  },
  'clears the cookies of a sign-in in its place': {
    change: clearing('ended'),
    contradicts: '(h) a response to an older request',
    plan: 'a request, and a sign-in in place of its session',
  },
  'clears those of a sign-in after a refusal': {
    change: clearing('rejected'),
    contradicts: '(h) a response to an older request',
    plan: 'a request, and a sign-in after its session was rejected',
  },
};
