/** What may happen in a schedule, as fast-check generates it. */

import fc from 'fast-check';
import type { Fate } from './upstream-model.ts';

interface Common {
  /** Since the command before it. */
  readonly afterMs: number;
  readonly instance: 0 | 1;
  /** Which of the tokens that clients have received: 0 is the newest, 1 the one before it. */
  readonly token: number;
}

export type Command = Common &
  (
    | { readonly kind: 'request'; readonly asksAfterMs: number; readonly callMs: number }
    | { readonly kind: 'presentation' | 'sign-out' | 'crash' | 'forged claim' | 'Redis comes back' }
    | { readonly kind: 'sign-in'; readonly how: 'replaces' | 'again' | 'replaces, again' }
    | {
        readonly kind: 'Redis goes away';
        /** Redis restarts empty, connections are cut, or nothing arrives until it is back. */
        readonly how: 'restart' | 'cut' | 'stalled';
        readonly who: 'both' | 'one';
      }
  );

export interface Plan {
  readonly commands: readonly Command[];
  /** Of one call to the upstream after the other, and from the first again. */
  readonly fates: readonly Fate[];
  readonly expiresInSeconds: number;
}

const common = {
  // Around the times that the coordination knows: polls, claims, the windows, time limits, and what is kept.
  afterMs: fc.constantFrom(
    0,
    0,
    0,
    0,
    1,
    30,
    45,
    400,
    600,
    1500,
    3100,
    9700,
    10_300,
    31_000,
    61_000,
    290_000,
  ),
  instance: fc.constantFrom(0 as const, 1 as const),
  token: fc.constantFrom(0, 0, 0, 1, 1, 2, 3),
};
const ofKind = <Kind extends Command['kind']>(kind: Kind) => ({ kind: fc.constant(kind), ...common });

const request = fc.record({
  ...ofKind('request'),
  asksAfterMs: fc.constantFrom(0, 0, 0, 0, 20, 200, 5000, 11_000, 70_000, 279_000),
  callMs: fc.constantFrom(0, 0, 0, 20, 2000, 15_000),
});
const presentation = fc.record(ofKind('presentation'));
const signOut = fc.record(ofKind('sign-out'));
const signIn = fc.record({
  ...ofKind('sign-in'),
  how: fc.constantFrom('replaces' as const, 'again' as const, 'replaces, again' as const),
});
const crash = fc.record(ofKind('crash'));
const forgedClaim = fc.record(ofKind('forged claim'));
const away = fc.record({
  ...ofKind('Redis goes away'),
  how: fc.constantFrom('restart' as const, 'cut' as const, 'stalled' as const),
  who: fc.constantFrom('both' as const, 'one' as const),
});
const back = fc.record(ofKind('Redis comes back'));

const many = { arbitrary: request, weight: 10 };
const some = { arbitrary: presentation, weight: 2 };
const few = <Value>(arbitrary: fc.Arbitrary<Value>, weight = 1) => ({ arbitrary, weight });

/** Some faults excuse much, so that most schedules are without them. */
const command = {
  faultless: fc.oneof<fc.MaybeWeightedArbitrary<Command>[]>(many, some, few(signOut, 2), few(signIn)),
  crashes: fc.oneof<fc.MaybeWeightedArbitrary<Command>[]>(many, some, few(signOut), few(crash, 2)),
  outages: fc.oneof<fc.MaybeWeightedArbitrary<Command>[]>(
    many,
    some,
    few(signOut, 2),
    few(signIn),
    few(away, 3),
    few(back, 3),
  ),
  forgeries: fc.oneof<fc.MaybeWeightedArbitrary<Command>[]>(many, some, few(forgedClaim, 2), few(crash)),
};
const commandsOf = (one: fc.Arbitrary<Command>) => fc.array(one, { minLength: 1, maxLength: 12 });

const fate: fc.Arbitrary<Fate> = fc.record({
  beforeMs: fc.constantFrom(0, 0, 0, 0, 700, 3500),
  afterMs: fc.constantFrom(0, 0, 0, 0, 700, 3500),
  lost: fc.oneof(
    { arbitrary: fc.constant('never' as const), weight: 8 },
    { arbitrary: fc.constantFrom('before it arrives' as const, 'after it arrived' as const), weight: 1 },
  ),
});

export const plan: fc.Arbitrary<Plan> = fc.record({
  commands: fc.oneof(
    few(commandsOf(command.faultless), 4),
    few(commandsOf(command.crashes), 2),
    few(commandsOf(command.outages), 2),
    few(commandsOf(command.forgeries)),
  ),
  fates: fc.array(fate, { maxLength: 6 }),
  expiresInSeconds: fc.constantFrom(900, 900, 8),
});
