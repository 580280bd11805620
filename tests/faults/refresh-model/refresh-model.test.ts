import { expect, it } from 'bun:test';
import { checks } from './checks.ts';
import { checkSchedules, isContradicted, tryEveryOrder } from './model.ts';
import type { Process } from './schedule.ts';
import { SMALL_PLANS } from './small-plans.ts';

const { MODEL_SEED, MODEL_RUNS, MODEL_PATH, MODEL_PREEMPTIONS } = process.env;
/** Another one each time, because what is to be found is rare. A failure prints how to run it again. */
const SEED = Number(MODEL_SEED || Math.floor(Math.random() * 2 ** 31));
const RUNS = Number(MODEL_RUNS || 1500);
const PREEMPTIONS = Number(MODEL_PREEMPTIONS || 2);
/** Always the same, because a broken process may be contradicted by few schedules. */
const SEED_OF_BROKEN = 20_261_123;

it(
  `the session layer keeps every sentence of checks.ts in random schedules: MODEL_SEED=${SEED}`,
  async () => {
    await checkSchedules(SEED, RUNS, MODEL_PATH);
  },
  40 * RUNS,
);

it.each(SMALL_PLANS)(
  `it keeps them in every order of %s, with up to ${PREEMPTIONS} preemptions`,
  async (_, plan) => {
    expect(await tryEveryOrder(plan, PREEMPTIONS)).toBeGreaterThan(500);
  },
  30_000 * PREEMPTIONS ** 2,
);

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

/** For each sentence, in their order, a process that contradicts it. */
const BROKEN: readonly ((process: Process) => void)[] = [
  refreshing(() => () => new Promise(() => {})),
  refreshing(
    (_, { upstream }) =>
      (token, record) =>
        upstream.refresh(token, record),
  ),
  refreshing((real) => async (token, ...request) => {
    const outcome = await real(token, ...request);
    return outcome.kind === 'renewed' ? real(outcome.pair.refreshToken, ...request) : outcome;
  }),
  repeating(async () => ({ kind: 'rejected' })),
  repeating((first) => first),
  counting(undefined),
  counting('late'),
  refreshing((real) => async (...request) => {
    const outcome = await real(...request);
    return outcome.kind === 'renewed' ? { kind: 'rejected' } : outcome;
  }),
  always('rejected'),
  refreshing(() => async () => ({ kind: 'ended', clearsCookies: true })),
  always('unreachable'),
  ({ shared }) => void Object.assign(shared, { end: async () => ({ hadEnded: false }) }),
  ({ upstream }) => void Object.assign(upstream, { signOut: async () => 204 }),
  ({ upstream }) => void Object.assign(upstream, { signOut: async () => 204 }),
  ({ shared }) => void Object.assign(shared, { newest: async (pair: unknown) => pair }),
  refreshing((real, { clock }) => async (...request) => {
    await clock.sleep(4000);
    return real(...request);
  }),
  refreshing((real) => async (...request) => {
    const outcome = await real(...request);
    return outcome.kind === 'ended' ? { ...outcome, clearsCookies: true } : outcome;
  }),
];

it.each(Object.keys(checks).map((sentence, index) => [sentence, BROKEN[index]] as const))(
  'a process that is broken contradicts "%s"',
  async (sentence, change) => {
    expect(await isContradicted(sentence, change, SEED_OF_BROKEN, 500)).toBe(true);
  },
);
