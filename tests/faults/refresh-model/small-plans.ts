/** Small plans of which every order of events is tried, with a few preemptions. */

import type { Command, Plan } from './plans.ts';
import type { Fate, Habits } from './upstream-model.ts';

/** What a client or a machine does; at instance A, if nothing else is said. */
function a(kind: Command['kind'], rest: Partial<Command> = {}): Command {
  return { kind, instance: 0, afterMs: 0, token: 0, isLost: false, asksAfterMs: 0, callMs: 0, ...rest };
}
const atB = { instance: 1 } as const;
const request = a('request');
/** The call arrives, and its response takes longer. */
const slow: Fate = { beforeMs: 0, afterMs: 700, lost: 'never' };
const lost: Fate = { beforeMs: 0, afterMs: 0, lost: 'before it arrives' };

interface Small {
  /** They happen in this order when nothing is preempted. */
  readonly commands: readonly Command[];
  readonly fates?: readonly Fate[];
  readonly habits?: Partial<Habits>;
}

const SMALL: Readonly<Record<string, Small>> = {
  'two requests and a sign-out': { commands: [request, a('request', atB), a('sign-out', atB)] },
  'two requests and a crash': { commands: [request, a('crash'), a('request', atB)] },
  'two requests while Redis restarts': {
    commands: [request, a('Redis restarts'), a('Redis is back'), a('request', atB)],
  },
  'a request, and a sign-in after its session was rejected': {
    commands: [
      a('request', { asksAfterMs: 1200 }),
      a('the upstream ends the session'),
      a('request', atB),
      a('sign-in'),
    ],
  },
  'a request, and a sign-in in place of its session': {
    commands: [a('request', { asksAfterMs: 20 }), a('sign-in', atB), a('request', atB)],
  },
  'two sign-outs, of which the first one does not reach the upstream': {
    commands: [a('sign-out', { isLost: true }), a('sign-out')],
    fates: [lost, slow],
  },
  'a sign-in whose response is lost, and a sign-out': {
    commands: [a('sign-in', { isLost: true }), a('sign-out'), request],
  },
  'two requests at an instance that stands still': {
    commands: [request, a('the instance stands still', { afterMs: 30 }), request],
    fates: [slow],
  },
  'an instance that stands still while another one gets no verdict': {
    commands: [
      request,
      a('the instance stands still'),
      a('request', { ...atB, afterMs: 3100 }),
      a('request', { afterMs: 700 }),
    ],
    fates: [slow, lost],
  },
  'a response that takes minutes, and a request meanwhile': {
    commands: [a('request', { callMs: 70_000 }), a('request', { ...atB, afterMs: 61_000 })],
  },
  'a request whose first call takes a minute, and a sign-out': {
    commands: [a('request', { asksAfterMs: 70_000 }), a('sign-out')],
    fates: [lost, slow],
  },
  'a response that takes a minute, and a sign-out': {
    commands: [a('request', { callMs: 70_000 }), a('sign-out')],
  },
  'a copy of the old cookies while Redis is away': {
    commands: [a('Redis is cut off'), request, a('request', { afterMs: 600, token: 1 })],
  },
  'a copy of the old cookies, after their window': {
    commands: [request, a('request', { afterMs: 61_000, token: 1 })],
  },
  'an upstream that issues the same token after a sign-out': {
    commands: [request, a('sign-out'), a('sign-in'), request],
    habits: { issuesSame: true },
  },
};

// The clocks are so far apart that a comparison of two machines' times would matter everywhere.
const clocksAheadMs = [12_000, -60_000, 45_000] as const;
const usual: Habits = { expiresInSeconds: 900, reuseEndsFamily: true, issuesSame: false };

export const SMALL_PLANS: readonly (readonly [what: string, plan: Plan])[] = Object.entries(SMALL).map(
  ([what, { commands, fates = [], habits }]) => {
    return [what, { clocksAheadMs, commands, fates, habits: { ...usual, ...habits } }];
  },
);
