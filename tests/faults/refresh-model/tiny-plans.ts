/** The plans whose every order is tried. Each request carries the same refresh token, unless it is said otherwise. */

import type { Command, Plan } from './commands.ts';

type Instance = Command['instance'];

const request = (instance: Instance, change: object = {}): Command => ({
  ...{ kind: 'request', afterMs: 0, instance, token: 0, asksAfterMs: 0, callMs: 0 },
  ...change,
});
const signOut = (instance: Instance): Command => ({ kind: 'sign-out', afterMs: 0, instance, token: 0 });
const crash = (instance: Instance): Command => ({ kind: 'crash', afterMs: 0, instance, token: 0 });
const away: Command = {
  ...{ kind: 'Redis goes away', afterMs: 0, instance: 0, token: 0 },
  ...{ how: 'restart', who: 'both' },
};
const back: Command = { kind: 'Redis comes back', afterMs: 0, instance: 0, token: 0 };
const present = (instance: Instance): Command => ({ kind: 'presentation', afterMs: 0, instance, token: 0 });
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
const TWO_REQUESTS = INSTANCES.map((second) => [request(0), request(second)]);
const EVENTS: readonly (readonly Command[])[] = [
  ...INSTANCES.map((instance) => [signOut(instance)]),
  ...INSTANCES.map((instance) => [crash(instance)]),
  [away, back],
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
      [...ordersOf([requests, [signOut(one)], [crash(other)], [away, back]])].map((commands) =>
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
  planOf([request(0), later(61_000, request(second, { token: 1 }))]),
  planOf([request(0), present(second), later(10_300, request(0, { token: 1 }))]),
  // Before that.
  planOf([request(0), present(second), later(9700, request(second, { token: 1 }))]),
  // A response that leaves after the next refresh, and after a sign-out.
  planOf([request(0, { callMs: 2000 }), request(second), request(0)]),
  planOf([request(0, { callMs: 2000 }), request(second), signOut(second)]),
  // A refresh that takes longer than a lease, that is lost, and whose instance dies.
  planOf([request(0), request(second)], [SLOW]),
  planOf([request(0), request(second)], [LOST]),
  planOf([request(0), later(600, crash(0)), request(second)], [SLOW]),
]);
