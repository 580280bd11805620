/** What must hold of every history, one sentence each. */

import {
  type Facts,
  isBefore,
  type Judged,
  lifetimes,
  logoutMs,
  SPREADS_MS,
  signInMs,
  wasInFlightDuring,
} from './facts.ts';
import type { Moment, Request, Send, SignOut, Token } from './history.ts';

/** Gives what contradicts the sentence, in words. */
type Check = (facts: Facts) => string[];
type IsWrong<Subject> = (subject: Subject, facts: Facts) => unknown;

const sends = (isWrong: IsWrong<Send>): Check => {
  return (facts) => facts.history.sends.filter((send) => isWrong(send, facts)).map(nameOf);
};
const requests = (isWrong: IsWrong<Request>): Check => {
  return (facts) => facts.history.requests.filter((request) => isWrong(request, facts)).map(nameOf);
};
/** Of the requests that no fault disturbs. */
const undisturbed = (isWrong: IsWrong<Judged>): Check => {
  return (facts) =>
    facts
      .undisturbed()
      .filter((request) => isWrong(request, facts))
      .map(nameOf);
};

export const checks: Readonly<Record<string, Check>> = {
  'every request ends, and leaves no timer behind': ({ history: { stuck, timersLeft } }) => [
    ...(stuck ? [stuck] : []),
    ...(timersLeft ? [`${timersLeft} timers are left`] : []),
  ],

  'a refresh token is sent to the upstream once': sends((second, facts) => {
    const first = facts.sendBefore(second);
    return first && !facts.wasRedisAway(first.sent, second.sent) && !mayBeSentAgain(facts, first, second);
  }),

  'an instance sends a token once, with Redis or without': sends((second, facts) => {
    const first = facts.sendBefore(second, second.instance);
    return first && !mayBeSentAgain(facts, first, second);
  }),

  'a pair whose access token is good is not renewed by a request with an older token': sends(
    ({ token, sent }, facts) =>
      token.before &&
      sent.at < token.issued.at + facts.history.accessTokensLastMs &&
      !facts.wasIssuedAgain(token) &&
      facts.signOutsOf(token).length === 0 &&
      !facts.wasRedisAway(token.issued, sent) &&
      !facts.history.requests.some((request) => request.token === token && isBefore(request.asked, sent)),
  ),

  'a spent token yields the newest pair of its chain while its window is open': undisturbed(
    (request, facts) => {
      const { outcome, pair } = request;
      if (!isInItsWindow(facts, request) || outcome === 'unreachable') return false;
      return outcome !== 'renewed' || (pair && pair.generation < newestBefore(facts, request));
    },
  ),

  'a spent token reaches the upstream when its window is closed': undisturbed((request, facts) => {
    const { token, arrived, ended, outcome } = request;
    const renewal = facts.renewal(token);
    if (!renewal || arrived.at <= facts.closing(token).latest) return false;
    // A process that has crashed may have lost what clients had presented to it.
    if (facts.history.crashes.length > 0 || facts.signOutsOf(token).length > 0) return false;
    return outcome === 'renewed' || !facts.wasSentBetween(token, renewal.sent, ended);
  }),

  'a spent token that is sent to the upstream is counted as a reuse': sends(({ token, sent }, facts) => {
    const renewal = facts.renewal(token);
    if (!renewal || !isBefore(renewal.ended, sent) || facts.wasIssuedAgain(token)) return false;
    if (facts.wasRedisAway(token.issued, sent) || facts.history.crashes.length > 0) return false;
    if (sent.at >= renewal.ended.at + lifetimes.renewedMs - SPREADS_MS) return false;
    const isFirstReuse = !facts.wasSentBetween(token, renewal.sent, sent);
    return isFirstReuse && !facts.requestsOf(token.family).some(({ record }) => record.refreshTokenReused);
  }),

  'only what was sent again is counted as a reuse': requests(({ record, token, isLost }, facts) => {
    if (!record.refreshTokenReused || isLost || facts.wasIssuedAgain(token)) return false;
    return facts.history.sends.filter((send) => send.token === token).length < 2;
  }),

  'a request is rejected only after the upstream has rejected its token or its family': requests(
    ({ outcome, token, ended }, facts) => {
      const families = facts.namesakesOf(token);
      const isReason = (send: Send) =>
        families.has(send.token.family) && send.outcome === 'rejected' && isBefore(send.ended, ended);
      return outcome === 'rejected' && !facts.history.sends.some(isReason);
    },
  ),

  'a request is ended only after a sign-out, or a sign-in in its place': requests(
    ({ outcome, token, ended, arrived }, facts) => {
      if (outcome !== 'ended' || !ended) return false;
      const isAgain = facts.isIssuedAgainBy(token, arrived);
      if (isAgain && isExcusedAgain(facts, token, arrived, ended)) return false;
      const families = facts.namesakesOf(token);
      const isReason = (signOut: SignOut) =>
        families.has(signOut.token.family) &&
        isBefore(signOut.began, ended) &&
        !(isAgain && isBefore(signOut.ended, token.issued));
      return !facts.history.signOuts.some(isReason);
    },
  ),

  'no request finds the upstream unreachable that has responded': undisturbed((request, facts) => {
    const { token, outcome, asked, ended } = request;
    const wasUnreachable = (send: Send) =>
      send.token.family === token.family &&
      isBefore(send.sent, ended) &&
      (send.outcome === 'unreachable'
        ? !send.ended || send.ended.at + SPREADS_MS > asked.at
        : facts.crashOf(send.instance));
    return outcome === 'unreachable' && !facts.history.sends.some(wasUnreachable);
  }),

  'after a sign-out no token of the chain yields a pair': undisturbed((request, facts) => {
    const { token, asked, ended, outcome, instance } = request;
    return outcome === 'renewed' && facts.effectiveSignOuts(token, instance, asked, ended.at).length > 0;
  }),

  'after a sign-out the very token yields no pair at the same instance, with Redis or without': requests(
    ({ token, asked, ended, outcome, instance }, facts) =>
      outcome === 'renewed' &&
      ended &&
      !facts.wasIssuedAgain(token) &&
      facts.history.signOuts.some(
        (signOut) =>
          signOut.token === token &&
          signOut.instance === instance &&
          !facts.isRepeated(signOut) &&
          isBefore(signOut.ended, asked) &&
          ended.at < (signOut.ended?.at ?? 0) + lifetimes.unknownEndedMs,
      ),
  ),

  'a pair that arrives after the sign-out is given to nobody': undisturbed(({ pair, outcome }, facts) => {
    const send = facts.history.sends.find(({ successor }) => successor && successor === pair);
    return outcome === 'renewed' && send && isLate(facts, send);
  }),

  'a pair that arrives after the sign-out is signed out at the upstream': sends((send, facts) => {
    const { successor, instance } = send;
    if (!successor || facts.crashOf(instance) || !isLate(facts, send)) return false;
    return !facts.history.upstreamSignOuts.includes(successor.text);
  }),

  'a response that leaves after the sign-out sets no cookies': undisturbed((request, facts) => {
    const { pair, leaves, given, instance } = request;
    if (!pair || !leaves || !given || facts.wasRedisAway(pair.issued, leaves)) return false;
    return facts.effectiveSignOuts(pair, instance, leaves).length > 0;
  }),

  'a response sets the newest pair that a request of its instance has had, or none': undisturbed(
    ({ token, instance, leaves, given }, facts) => {
      if (!leaves || !given || facts.signOutsOf(token).length > 0) return false;
      if (facts.wasRedisAway(token.issued, leaves)) return false;
      const atInstance = (request: Request) => request.instance === instance;
      return given.generation < facts.newestPair(token.family, leaves, atInstance);
    },
  ),

  'nobody waits longer than a sign-in may take while the upstream is not being asked': requests(
    ({ asked, ended, token }, facts) => {
      if (!asked || !ended || facts.wasIssuedAgain(token)) return false;
      const asking = facts.history.sends
        // A sign-in may have issued the same token again, as the first one of another family.
        .filter((send) => send.token.family === token.family || send.token.text === token.text)
        .map(({ sent, ended: end, instance }) => {
          const until = end ?? facts.crashOf(instance) ?? ended;
          return { from: Math.max(sent.at, asked.at), until: Math.min(until.at, ended.at) };
        });
      const idleMs = ended.at - asked.at - lengthOf(asking);
      // A late pair is signed out at the upstream before its request ends.
      const leases = Math.max(1, facts.history.crashes.length);
      return idleMs > leases * signInMs + logoutMs + 1000;
    },
  ),

  'a token that a sign-in has issued again works': requests(({ token, outcome, pair, arrived }, facts) => {
    if (!facts.isIssuedAgainBy(token, arrived) || isIssuedAgainAfter(facts, token, arrived)) return false;
    if (wasInFlightAtSignIn(facts, token)) return false;
    return outcome === 'renewed' && pair && pair.family.number < token.family.number;
  }),
};

export function violationsIn(facts: Facts): string[] {
  return Object.entries(checks).flatMap(([sentence, check]) =>
    check(facts).map((what) => `not "${sentence}": ${what}`),
  );
}

function nameOf({ token, instance }: Pick<Request | Send, 'token' | 'instance'>): string {
  return `${token.text} at ${instance}`;
}

/** For another reason than an outage. */
function mayBeSentAgain(facts: Facts, first: Send, { token, sent }: Send): boolean {
  if (facts.wasIssuedAgain(token)) return true;
  // Without a pair there is nothing to yield.
  if (isBefore(first.ended, sent) && first.outcome !== 'renewed') return true;
  const ofToken = facts.history.requests.filter((request) => request.token === token);
  const isKnown = ofToken.some(
    ({ outcome, instance }) => outcome === 'renewed' && instance === first.instance,
  );
  if (isBefore(facts.crashOf(first.instance), sent) && !isKnown) return true;
  if (facts.signOutsOf(token).some(({ began }) => isBefore(began, sent))) return true;
  return ofToken.some(
    ({ asked, arrived, ended }) =>
      isBefore(asked, sent) && !isBefore(ended, sent) && arrived.at >= facts.closing(token).earliest,
  );
}

/** Of a session that neither the upstream nor a sign-out has ended, with a pair that another request has had. */
function isInItsWindow(facts: Facts, { token, arrived, asked, ended }: Judged): boolean {
  const wasRenewed = facts.history.requests.some(
    (other) => other.token === token && other.outcome === 'renewed' && isBefore(other.ended, asked),
  );
  if (!wasRenewed || arrived.at >= facts.closing(token).earliest) return false;
  if (isBefore(token.family.revoked, ended)) return false;
  return !facts.signOutsOf(token).some(({ began }) => isBefore(began, ended));
}

/** The generation of the newest pair of its chain that any request has had before it asked. */
function newestBefore(facts: Facts, { token, asked }: Judged): number {
  return facts.newestPair(token.family, asked, () => true);
}

function isIssuedAgainAfter({ history }: Facts, token: Token, arrived: Moment): boolean {
  return history.tokens.some(({ text, issued }) => text === token.text && isBefore(arrived, issued));
}

/** Whether a request with the earlier token of the same text was in flight when a sign-in issued it again. */
function wasInFlightAtSignIn({ history }: Facts, token: Token): boolean {
  const signIn = history.signIns.find((each) => each.token === token);
  const isNamesake = (request: Request) => request.token !== token && request.token.text === token.text;
  return history.requests.some(
    (request) => signIn && isNamesake(request) && wasInFlightDuring(request, signIn),
  );
}

/** Whether a sign-out from before its sign-in may still be known somewhere. */
function isExcusedAgain(facts: Facts, token: Token, arrived: Moment, ended: Moment): boolean {
  if (isIssuedAgainAfter(facts, token, arrived) || facts.mayStillBeEnded(token)) return true;
  const [first = token] = facts.history.tokens;
  return facts.wasRedisAway(first.issued, ended);
}

/** Whether a sign-out was over when the pair of this refresh arrived. */
function isLate(facts: Facts, { token, instance, ended, outcome }: Send): boolean {
  if (!ended || outcome !== 'renewed' || facts.wasIssuedAgain(token)) return false;
  return facts
    .effectiveSignOuts(token, instance, ended)
    .filter((signOut) => signOut.token.generation <= token.generation)
    .some((signOut) => !facts.wasRedisAway(signOut.token.issued, ended));
}

/** Of the union of intervals. */
function lengthOf(intervals: readonly { readonly from: number; readonly until: number }[]): number {
  let length = 0;
  let covered = Number.NEGATIVE_INFINITY;
  for (const { from, until } of intervals.toSorted((one, other) => one.from - other.from)) {
    length += Math.max(0, until - Math.max(from, covered));
    covered = Math.max(covered, until);
  }
  return length;
}
