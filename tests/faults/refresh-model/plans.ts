/** What may happen in a schedule, as fast-check generates it. */

import fc from 'fast-check';

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

/** Longer than a lease, shorter than a lease and the fact of a refresh without a verdict. */
export const STANDSTILL_MS = 3300;

type Values<Generated> = Generated extends fc.Arbitrary<infer Value> ? Value : never;
const oneOf = <const Value>(...values: readonly Value[]) => fc.constantFrom(...values);
const numberOf = (...values: readonly number[]) => fc.constantFrom(...values);

/** Around the times that the coordination knows: polls, leases, windows, time limits, and lifetimes. */
const TIMES = [0, 0, 0, 0, 1, 30, 45, 400, 600, 1500, 3100, 9700, 10_300, 31_000, 61_000, 290_000];

function many(kind: Kind, count: number): Kind[] {
  return Array<Kind>(count).fill(kind);
}

export type Command = Values<ReturnType<typeof commandsOf>>[number];

function commandsOf(kinds: Kind[], times = TIMES) {
  const usual = oneOf<Kind>('request', 'request', 'request', 'request', 'presentation');
  const command = fc.record({
    kind: fc.oneof({ weight: 12, arbitrary: usual }, { weight: kinds.length, arbitrary: oneOf(...kinds) }),
    afterMs: numberOf(...times),
    /** One is cut off or stalled; Redis restarts and comes back for both. */
    instance: oneOf(0, 1),
    /** 0: the browser's cookies. Otherwise a copy of those that clients have received: 1 is the pair before the newest. */
    token: numberOf(0, 0, 0, 1, 1, 2, 3),
    /** Whether the response does not reach the client. */
    isLost: fc.constantFrom(false, false, false, false, false, false, true),
    /** Of a request: when it needs a refresh, and how long its call to the upstream takes after that. */
    asksAfterMs: numberOf(0, 0, 0, 0, 20, 200, 5000, 11_000, 70_000, 279_000),
    callMs: numberOf(0, 0, 0, 0, 20, 2000, 15_000, 70_000, 279_000),
  });
  return fc.array(command, { minLength: 1, maxLength: 12 });
}

const clock = numberOf(0, 0, -60_000, -12_000, 12_000, 45_000, 60_000);
const delay = numberOf(0, 0, 0, 0, 700, 3500);

/** How one call to the upstream goes. */
export type Fate = Values<typeof fate>;
const fate = fc.record({
  /** Before it arrives, and before its response does. */
  beforeMs: delay,
  afterMs: delay,
  lost: fc.oneof(
    { weight: 8, arbitrary: oneOf('never') },
    { weight: 2, arbitrary: oneOf('before it arrives', 'after it arrived') },
  ),
});

/** How an upstream treats its refresh tokens. */
export type Habits = Values<typeof habits>;
const habits = fc.record({
  expiresInSeconds: numberOf(900, 900, 8),
  /** Whether a spent token that is sent again ends its whole family. */
  reuseEndsFamily: fc.constantFrom(true, true, false),
  /** Whether a refresh and the next sign-in issue the same refresh token again. */
  issuesSame: fc.constantFrom(false, false, false, false, false, false, false, true),
});

const OUTAGES: Kind[] = ['Redis restarts', 'Redis is cut off', 'Redis stalls', ...many('Redis is back', 3)];
/** How often, what happens beside requests, and when. Some faults excuse much, so most schedules are without them. */
const MIXES: readonly (readonly [weight: number, kinds: Kind[], times?: number[]])[] = [
  [4, ['sign-out', 'sign-out', 'sign-in']],
  [3, [...many('sign-in', 3), 'sign-out', 'the upstream ends the session', 'the browser loses its cookies']],
  [4, [...many('the instance stands still', 4), 'sign-out'], [0, 0, 0, 30, 600, 3100, 3100, 3100, 31_000]],
  [2, ['sign-out', 'crash', 'crash']],
  [2, ['sign-out', 'sign-out', 'sign-in', ...OUTAGES]],
];

export type Plan = Values<typeof plans>;
export const plans = fc.record({
  /** How far the clocks of the two instances and of Redis are ahead. */
  clocksAheadMs: fc.tuple(clock, clock, clock),
  commands: fc.oneof(
    ...MIXES.map(([weight, kinds, times]) => ({ weight, arbitrary: commandsOf(kinds, times) })),
  ),
  /** Of one call to the upstream after the other, and from the first again. */
  fates: fc.array(fate, { maxLength: 6 }),
  habits,
});

/** What a client or a machine does; at instance A, if nothing else is said. */
function a(kind: Command['kind'], rest: Partial<Command> = {}): Command {
  return { kind, instance: 0, afterMs: 0, token: 0, isLost: false, asksAfterMs: 0, callMs: 0, ...rest };
}
const atB = { instance: 1 } as const;
const request = a('request');
const requestAtB = a('request', atB);
/** The call arrives, and its response takes longer. */
const slow: Fate = { beforeMs: 0, afterMs: 700, lost: 'never' };
const unsent: Fate = { beforeMs: 0, afterMs: 0, lost: 'before it arrives' };

/** The commands happen in this order when nothing is preempted. */
function small(commands: Command[], fates: Fate[] = [], habits?: Partial<Habits>): Plan {
  // So far apart that a comparison of two machines' times would matter everywhere.
  const clocksAheadMs: Plan['clocksAheadMs'] = [12_000, -60_000, 45_000];
  const usual = { expiresInSeconds: 900, reuseEndsFamily: true, issuesSame: false };
  return { clocksAheadMs, commands, fates, habits: { ...usual, ...habits } };
}

/** Of which every order of events is tried, with a few preemptions. */
export const SMALL_PLANS: Readonly<Record<string, Plan>> = {
  'two requests and a sign-out': small([request, requestAtB, a('sign-out', atB)]),
  'two requests and a crash': small([request, a('crash'), requestAtB]),
  'two requests while Redis restarts': small([request, a('Redis restarts'), a('Redis is back'), requestAtB]),
  'a request and a sign-in after a rejection': small([
    a('request', { asksAfterMs: 1200 }),
    a('the upstream ends the session'),
    requestAtB,
    a('sign-in'),
  ]),
  'a sign-in in place of a session': small([
    a('request', { asksAfterMs: 20 }),
    a('sign-in', atB),
    requestAtB,
  ]),
  'two sign-outs, the first one lost': small(
    [a('sign-out', { isLost: true }), a('sign-out')],
    [unsent, slow],
  ),
  'a sign-in that is lost, and a sign-out': small([a('sign-in', { isLost: true }), a('sign-out'), request]),
  'two requests around a standstill': small(
    [request, a('the instance stands still', { afterMs: 30 }), request],
    [slow],
  ),
  'a standstill while another instance gets no verdict': small(
    [
      request,
      a('the instance stands still'),
      a('request', { ...atB, afterMs: 3100 }),
      a('request', { afterMs: 700 }),
    ],
    [slow, unsent],
  ),
  'a request during a long response': small([
    a('request', { callMs: 70_000 }),
    a('request', { ...atB, afterMs: 61_000 }),
  ]),
  'a sign-out a minute before a refresh': small(
    [a('request', { asksAfterMs: 70_000 }), a('sign-out')],
    [unsent, slow],
  ),
  'a sign-out during a long response': small([a('request', { callMs: 70_000 }), a('sign-out')]),
  'old cookies while Redis is away': small([
    a('Redis is cut off'),
    request,
    a('request', { afterMs: 600, token: 1 }),
  ]),
  'old cookies at another instance after a short outage': small([
    a('Redis is cut off'),
    request,
    a('Redis is back', { afterMs: 600 }),
    a('request', { ...atB, afterMs: 3100, token: 1 }),
  ]),
  'old cookies after their window': small([request, a('request', { afterMs: 61_000, token: 1 })]),
  'two requests after one without a verdict': small(
    [requestAtB, a('request', { afterMs: 400 }), requestAtB],
    [unsent, { beforeMs: 20, afterMs: 20, lost: 'never' }],
    { issuesSame: true },
  ),
  'a token that is issued again': small([request, a('sign-out'), a('sign-in'), request], [], {
    issuesSame: true,
  }),
};
