/** What may happen in a schedule, as fast-check generates it. */

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
