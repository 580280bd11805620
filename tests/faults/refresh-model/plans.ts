/** What may happen in a schedule: as fast-check generates it, and the small plans whose every order is tried. */

import fc from 'fast-check';
import type { Fate } from './upstream-model.ts';

/** Values around the times that the coordination knows: polls, leases, windows, time limits, and lifetimes. */
const AFTER_MS = [0, 0, 0, 0, 1, 30, 45, 400, 600, 1500, 3100, 9700, 10_300, 31_000, 61_000, 290_000];

const oneOf = <const Value>(...values: readonly Value[]) => fc.constantFrom(...values);

const ofKind = <const Kind extends string>(kind: Kind) => ({
  kind: fc.constant(kind),
  afterMs: oneOf(...AFTER_MS),
  instance: oneOf(0, 1),
  /** Which of the tokens that clients have received: 0 is the newest, 1 the one before it. */
  token: oneOf(0, 0, 0, 1, 1, 2, 3),
});

const request = fc.record({
  ...ofKind('request'),
  asksAfterMs: oneOf(0, 0, 0, 0, 20, 200, 5000, 11_000, 70_000, 279_000),
  callMs: oneOf(0, 0, 0, 20, 2000, 15_000),
});
const presentation = fc.record(ofKind('presentation'));
const signOut = fc.record(ofKind('sign-out'));
const signIn = fc.record({ ...ofKind('sign-in'), how: oneOf('replaces', 'again', 'replaces, again') });
const crash = fc.record(ofKind('crash'));
const away = fc.record({
  ...ofKind('Redis goes away'),
  /** Redis restarts empty, connections are cut, or nothing arrives until it is back. */
  how: oneOf('restart', 'cut', 'stalled'),
  who: oneOf('both', 'one'),
});
const back = fc.record(ofKind('Redis comes back'));

export type Command = Generated<
  | typeof request
  | typeof presentation
  | typeof signOut
  | typeof signIn
  | typeof crash
  | typeof away
  | typeof back
>;
type Generated<Source> = Source extends fc.Arbitrary<infer Value> ? Value : never;

type Weighted = fc.WeightedArbitrary<Command>;
const weigh = (weight: number, arbitrary: fc.Arbitrary<Command>): Weighted => ({ weight, arbitrary });

function commandsOf(...others: Weighted[]) {
  const command = fc.oneof<Weighted[]>(weigh(10, request), weigh(2, presentation), ...others);
  return fc.array(command, { minLength: 1, maxLength: 12 });
}

const fate: fc.Arbitrary<Fate> = fc.record({
  beforeMs: oneOf(0, 0, 0, 0, 700, 3500),
  afterMs: oneOf(0, 0, 0, 0, 700, 3500),
  lost: fc.oneof(
    { weight: 8, arbitrary: fc.constant('never' as const) },
    { weight: 1, arbitrary: oneOf('before it arrives', 'after it arrived') },
  ),
});

const clock = oneOf(0, 0, -60_000, -12_000, 12_000, 45_000, 60_000);

export const plan = fc.record({
  /** How far the clocks of the two instances and of Redis are ahead. */
  clocksAheadMs: fc.tuple(clock, clock, clock),
  // Some faults excuse much, so most schedules are without them.
  commands: fc.oneof(
    { weight: 4, arbitrary: commandsOf(weigh(2, signOut), weigh(1, signIn)) },
    { weight: 2, arbitrary: commandsOf(weigh(1, signOut), weigh(2, crash)) },
    {
      weight: 2,
      arbitrary: commandsOf(weigh(2, signOut), weigh(1, signIn), weigh(3, away), weigh(3, back)),
    },
  ),
  /** Of one call to the upstream after the other, and from the first again. */
  fates: fc.array(fate, { maxLength: 6 }),
  expiresInSeconds: oneOf(900, 900, 8),
});
export type Plan = Generated<typeof plan>;

/** Small plans. Each request carries the same refresh token, unless it is said otherwise. */
type Instance = Command['instance'];

const NOW = { afterMs: 0, token: 0 } as const;
const asks = (instance: Instance, change: object = {}): Command => ({
  ...{ kind: 'request', ...NOW, instance, asksAfterMs: 0, callMs: 0 },
  ...change,
});
const signsOut = (instance: Instance): Command => ({ kind: 'sign-out', ...NOW, instance });
const crashes = (instance: Instance): Command => ({ kind: 'crash', ...NOW, instance });
const presents = (instance: Instance): Command => ({ kind: 'presentation', ...NOW, instance });
const OUTAGE: readonly Command[] = [
  { kind: 'Redis goes away', ...NOW, instance: 0, how: 'restart', who: 'both' },
  { kind: 'Redis comes back', ...NOW, instance: 0 },
];
const later = (afterMs: number, command: Command): Command => ({ ...command, afterMs });

function planOf(commands: readonly Command[], fates: Plan['fates'] = []): Plan {
  // Far enough apart that a comparison of two machines' times would matter everywhere.
  return { clocksAheadMs: [12_000, -60_000, 45_000], commands: [...commands], fates, expiresInSeconds: 900 };
}

/** Every order of the groups, whose own commands keep theirs. */
function* ordersOf(groups: readonly (readonly Command[])[]): Generator<Command[]> {
  const begun = groups.filter((group) => group.length > 0);
  if (begun.length === 0) yield [];
  for (const group of begun) {
    const [first, ...rest] = group;
    const others = groups.map((other) => (other === group ? rest : other));
    for (const order of ordersOf(others)) if (first) yield [first, ...order];
  }
}

const INSTANCES: readonly Instance[] = [0, 1];
/** Both at one instance, or one at each. */
const TWO_REQUESTS = INSTANCES.map((second) => [asks(0), asks(second)]);
const EVENTS: readonly (readonly Command[])[] = [
  ...INSTANCES.map((instance) => [signsOut(instance)]),
  ...INSTANCES.map((instance) => [crashes(instance)]),
  OUTAGE,
];

/** Two requests, alone and with each of: a sign-out, a crash, an outage of Redis. */
export const TINY_PLANS: readonly Plan[] = TWO_REQUESTS.flatMap((requests) => [
  planOf(requests),
  ...EVENTS.flatMap((event) => [...ordersOf([requests, event])].map((commands) => planOf(commands))),
]);

/** Two requests with a sign-out, a crash and an outage of Redis. */
export const FULL_PLANS: readonly Plan[] = TWO_REQUESTS.flatMap((requests) =>
  INSTANCES.flatMap((one) =>
    INSTANCES.flatMap((other) =>
      [...ordersOf([requests, [signsOut(one)], [crashes(other)], OUTAGE])].map((commands) =>
        planOf(commands),
      ),
    ),
  ),
);

const SLOW = { beforeMs: 0, afterMs: 3500, lost: 'never' } as const;
const LOST = { beforeMs: 0, afterMs: 0, lost: 'before it arrives' } as const;

/** Two or three requests whose outcome depends on time, or on what becomes of a call to the upstream. */
export const LATE_PLANS: readonly Plan[] = INSTANCES.flatMap((second) => [
  // After the replay window, and after a client has had the successor for more than 10 s.
  planOf([asks(0), later(61_000, asks(second, { token: 1 }))]),
  planOf([asks(0), presents(second), later(10_300, asks(0, { token: 1 }))]),
  // Before that.
  planOf([asks(0), presents(second), later(9700, asks(second, { token: 1 }))]),
  // A response that leaves after the next refresh, and after a sign-out.
  planOf([asks(0, { callMs: 2000 }), asks(second), asks(0)]),
  planOf([asks(0, { callMs: 2000 }), asks(second), signsOut(second)]),
  // A refresh that takes longer than a lease, that is lost, and whose instance dies.
  planOf([asks(0), asks(second)], [SLOW]),
  planOf([asks(0), asks(second)], [LOST]),
  planOf([asks(0), later(600, crashes(0)), asks(second)], [SLOW]),
]);
