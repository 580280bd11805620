/** Processes that are broken, one for each law. */

import { RefreshCoordinator } from '../../../src/gateway/refresh/coordinator.ts';
import { MemoryReplayStore } from '../../../src/gateway/refresh/memory-store.ts';
import { newLedger } from '../../support/facts.ts';
import { settings } from './history.ts';
import type { Change, Process } from './schedule.ts';

type Refresh = Process['shared']['refresh'];
type Outcome = Awaited<ReturnType<Refresh>>;

/** A process whose refreshes end so, given the real one. */
const refreshing =
  (refresh: (real: Refresh, process: Process) => Refresh): Change =>
  (process) => {
    const { shared } = process;
    Object.assign(shared, { refresh: refresh(shared.refresh.bind(shared), process) });
  };
const always = (outcome: Outcome) => refreshing(() => async () => outcome);

/** It keeps facts for other times. */
const lasting =
  (refreshReplaySeconds: number, streamMs = settings.timeouts.streamMs): Change =>
  (process) => {
    const { store, upstream, clock } = process;
    const other = { ...settings, refreshReplaySeconds, timeouts: { ...settings.timeouts, streamMs } };
    Object.assign(process, { shared: new RefreshCoordinator(other, store, upstream, clock) });
  };

/** How each is broken, and how the sentence begins that it contradicts. */
export const BROKEN: Readonly<Record<string, { change: Change; contradicts: string }>> = {
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
    contradicts: '(b) a good pair is not renewed',
  },
  'replays nothing': {
    change: refreshing((real) => {
      const known = new Set<string>();
      return async (token, ...request) => {
        if (known.has(token)) return { kind: 'rejected' };
        known.add(token);
        return real(token, ...request);
      };
    }),
    contradicts: '(b) a spent token yields the newest pair',
  },
  'replays for ever': { change: lasting(1_000_000), contradicts: '(c) a spent token reaches the upstream' },
  'counts every refresh as a reuse': {
    change: refreshing((real) => (token, record, arrivedAt) => {
      record.refreshTokenReused = 'late';
      return real(token, record, arrivedAt);
    }),
    contradicts: '(c) only what was sent again',
  },
  'drops a pair that comes after its lease': {
    change: refreshing((real, { clock }) => async (...request) => {
      const askedAt = clock.now();
      const outcome = await real(...request);
      const isDropped = outcome.kind === 'renewed' && clock.now() - askedAt > 3000;
      return isDropped ? { kind: 'unreachable', cause: 'dropped' } : outcome;
    }),
    contradicts: 'a pair that an instance gets',
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
  'remembers a sign-out for 30 s': {
    change: lasting(10, 12_000),
    contradicts: '(d) after a sign-out no token',
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
  },
  'tells the upstream of a sign-out once': {
    change: ({ upstream }) => {
      const signOut = upstream.signOut.bind(upstream);
      const told = new Set<string>();
      Object.assign(upstream, {
        async signOut(...pair: Parameters<typeof signOut>) {
          const isTold = told.has(pair[0].refreshToken);
          told.add(pair[0].refreshToken);
          return isTold ? 204 : signOut(...pair);
        },
      });
    },
    contradicts: '(d) a sign-out with both cookies tells',
  },
  'sets its own pair': {
    change: ({ shared }) => Object.assign(shared, { newest: async (pair: unknown) => pair }),
    contradicts: '(e) a response sets the newest pair',
  },
  'shares nothing': {
    change(process) {
      const { upstream, clock } = process;
      const store = new MemoryReplayStore(newLedger(), clock.now);
      Object.assign(process, { shared: new RefreshCoordinator(settings, store, upstream, clock) });
    },
    contradicts: '(f) what an instance has learned',
  },
  'waits for longer than a lease': {
    change: refreshing((real, { clock }) => async (...request) => {
      await clock.sleep(4000);
      return real(...request);
    }),
    contradicts: '(g) nobody waits',
  },
  'clears the cookies of a sign-in in its place': {
    change: refreshing((real) => async (...request) => {
      const outcome = await real(...request);
      return outcome.kind === 'ended' ? { ...outcome, clearsCookies: true } : outcome;
    }),
    contradicts: '(h) a response to an older request',
  },
};
