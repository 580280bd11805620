/** What may happen in a schedule, as fast-check generates it. */

import fc from 'fast-check';
import type { Fate } from './upstream-model.ts';

type Instance = 0 | 1;

/** `sign-in` replaces a session. Redis comes back empty after a restart; what is stalled arrives then. */
type Kind =
  | 'request'
  | 'presentation'
  | 'sign-out'
  | 'sign-in'
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
  /** Which of the tokens that clients have received: 0 is the newest, 1 the one before it. */
  readonly token: number;
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
  readonly expiresInSeconds: number;
}

const oneOf = <const Value>(...values: readonly Value[]) => fc.constantFrom(...values);

function commandsOf(...kinds: Kind[]): fc.Arbitrary<Command[]> {
  const usual = oneOf<Kind>('request', 'request', 'request', 'request', 'presentation');
  const command = fc.record<Command>({
    kind: fc.oneof({ weight: 12, arbitrary: usual }, { weight: kinds.length, arbitrary: oneOf(...kinds) }),
    // Around the times that the coordination knows: polls, leases, windows, time limits, and lifetimes.
    afterMs: oneOf(0, 0, 0, 0, 1, 30, 45, 400, 600, 1500, 3100, 9700, 10_300, 31_000, 61_000, 290_000),
    instance: oneOf(0, 1),
    token: oneOf(0, 0, 0, 1, 1, 2, 3),
    asksAfterMs: oneOf(0, 0, 0, 0, 20, 200, 5000, 11_000, 70_000, 279_000),
    callMs: oneOf(0, 0, 0, 20, 2000, 15_000),
  });
  return fc.array(command, { minLength: 1, maxLength: 12 });
}

const clock = oneOf(0, 0, -60_000, -12_000, 12_000, 45_000, 60_000);
const delay = oneOf(0, 0, 0, 0, 700, 3500);
const lost = fc.oneof(
  { weight: 8, arbitrary: oneOf('never') },
  { weight: 1, arbitrary: oneOf('before it arrives', 'after it arrived') },
);

export const plans: fc.Arbitrary<Plan> = fc.record({
  clocksAheadMs: fc.tuple(clock, clock, clock),
  // Some faults excuse much, so most schedules are without them.
  commands: fc.oneof(
    { weight: 4, arbitrary: commandsOf('sign-out', 'sign-out', 'sign-in') },
    { weight: 2, arbitrary: commandsOf('sign-out', 'crash', 'crash') },
    {
      weight: 2,
      arbitrary: commandsOf(
        ...(['sign-out', 'sign-out', 'sign-in', 'Redis restarts', 'Redis is cut off'] as const),
        ...(['Redis stalls', 'Redis is back', 'Redis is back', 'Redis is back'] as const),
      ),
    },
  ),
  fates: fc.array(fc.record({ beforeMs: delay, afterMs: delay, lost }), { maxLength: 6 }),
  expiresInSeconds: oneOf(900, 900, 8),
});
