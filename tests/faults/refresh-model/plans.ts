/** What may happen in a schedule, as fast-check generates it. */

import fc from 'fast-check';
import type { Fate, Habits } from './upstream-model.ts';

type Instance = 0 | 1;

/**
 * The browser signs in with whatever cookies it has. Redis comes back empty after a restart; what is stalled arrives
 * then.
 */
type Kind =
  | 'request'
  | 'presentation'
  | 'sign-out'
  | 'sign-in'
  | 'the browser loses its cookies'
  | 'the upstream ends the session'
  | 'the instance stands still'
  | 'crash'
  | 'Redis restarts'
  | 'Redis is cut off'
  | 'Redis stalls'
  | 'Redis is back';

export interface Command {
  readonly kind: Kind;
  readonly afterMs: number;
  /** One is cut off or stalled; Redis restarts and comes back for both. */
  readonly instance: Instance;
  /** 0: the browser's cookies. Otherwise a copy of cookies that clients have received: 1 is the pair before the newest. */
  readonly token: number;
  /** Whether the response does not reach the client. */
  readonly isLost: boolean;
  /** Of a request: when it needs a refresh, and how long its call to the upstream takes after that. */
  readonly asksAfterMs: number;
  readonly callMs: number;
}

export interface Plan {
  /** How far the clocks of the two instances and of Redis are ahead. */
  readonly clocksAheadMs: readonly [a: number, b: number, redis: number];
  readonly commands: readonly Command[];
  /** Of one call to the upstream after the other, and from the first again. */
  readonly fates: readonly Fate[];
  readonly habits: Habits;
}

/** Longer than a lease, shorter than a lease and the fact of a refresh without a verdict. */
export const STANDSTILL_MS = 3300;

const oneOf = <const Value>(...values: readonly Value[]) => fc.constantFrom(...values);

/** Around the times that the coordination knows: polls, leases, windows, time limits, and lifetimes. */
const TIMES = [0, 0, 0, 0, 1, 30, 45, 400, 600, 1500, 3100, 9700, 10_300, 31_000, 61_000, 290_000];

function many(kind: Kind, count: number): Kind[] {
  return Array<Kind>(count).fill(kind);
}

function commandsOf(kinds: Kind[], times = TIMES): fc.Arbitrary<Command[]> {
  const usual = oneOf<Kind>('request', 'request', 'request', 'request', 'presentation');
  const command = fc.record<Command>({
    kind: fc.oneof({ weight: 12, arbitrary: usual }, { weight: kinds.length, arbitrary: oneOf(...kinds) }),
    afterMs: oneOf(...times),
    instance: oneOf(0, 1),
    token: oneOf(0, 0, 0, 1, 1, 2, 3),
    isLost: oneOf(false, false, false, false, false, false, true),
    asksAfterMs: oneOf(0, 0, 0, 0, 20, 200, 5000, 11_000, 70_000, 279_000),
    callMs: oneOf(0, 0, 0, 0, 20, 2000, 15_000, 70_000, 279_000),
  });
  return fc.array(command, { minLength: 1, maxLength: 12 });
}

const clock = oneOf(0, 0, -60_000, -12_000, 12_000, 45_000, 60_000);
const delay = oneOf(0, 0, 0, 0, 700, 3500);
const lost = fc.oneof(
  { weight: 8, arbitrary: oneOf('never') },
  { weight: 2, arbitrary: oneOf('before it arrives', 'after it arrived') },
);

/** How often, what happens beside requests, and when. Some faults excuse much, so most schedules are without them. */
const MIXES: readonly (readonly [weight: number, kinds: Kind[], times?: number[]])[] = [
  [4, ['sign-out', 'sign-out', 'sign-in']],
  [3, [...many('sign-in', 3), 'sign-out', 'the upstream ends the session', 'the browser loses its cookies']],
  [4, [...many('the instance stands still', 4), 'sign-out'], [0, 0, 0, 30, 600, 3100, 3100, 3100, 31_000]],
  [2, ['sign-out', 'crash', 'crash']],
  [
    2,
    [
      ...many('sign-out', 2),
      ...(['sign-in', 'Redis restarts', 'Redis is cut off', 'Redis stalls'] as const),
      ...many('Redis is back', 3),
    ],
  ],
];

export const plans: fc.Arbitrary<Plan> = fc.record({
  clocksAheadMs: fc.tuple(clock, clock, clock),
  commands: fc.oneof(
    ...MIXES.map(([weight, kinds, times]) => ({ weight, arbitrary: commandsOf(kinds, times) })),
  ),
  fates: fc.array(fc.record({ beforeMs: delay, afterMs: delay, lost }), { maxLength: 6 }),
  habits: fc.record({
    expiresInSeconds: oneOf(900, 900, 8),
    reuseEndsFamily: oneOf(true, true, false),
    issuesSame: oneOf(false, false, false, false, false, false, false, true),
  }),
});
