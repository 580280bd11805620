import { expect, it } from 'bun:test';
import { checks } from './checks.ts';
import { checkSchedules, isContradicted } from './model.ts';
import type { Process } from './schedule.ts';

/** Fixed, so that the suite is never red by luck; `bun run model` takes another one each time. */
const SEED = 20_261_123;

it('the coordination of refreshes keeps every sentence of checks.ts, whatever happens in whatever order', async () => {
  expect(await checkSchedules(SEED, 1500)).toBeUndefined();
}, 60_000);

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
  always('rejected'),
  refreshing(() => async () => ({ kind: 'ended', clearsCookies: true })),
  always('unreachable'),
  ({ shared }) => void Object.assign(shared, { end: async () => ({ hadEnded: false }) }),
  ({ upstream }) => void Object.assign(upstream, { signOut: async () => 204 }),
  ({ shared }) => void Object.assign(shared, { newest: async (pair: unknown) => pair }),
  refreshing((real, { clock }) => async (...request) => {
    await clock.sleep(4000);
    return real(...request);
  }),
];

it.each(Object.keys(checks).map((sentence, index) => [sentence, BROKEN[index]] as const))(
  'a process that is broken contradicts "%s"',
  async (sentence, change) => {
    expect(await isContradicted(sentence, change, SEED, 500)).toBe(true);
  },
);
