/** What must hold of every history, one sentence each. */

import {
  type Facts,
  type Judged,
  lifetimes,
  logoutMs,
  SPREADS_MS,
  signInMs,
  wasInFlightDuring,
} from './facts.ts';
import type { Moment, Request, Send, SignOut } from './history.ts';

/** Gives what contradicts the sentence, in words. */
type Check = (facts: Facts) => string[];

export const checks: Readonly<Record<string, Check>> = {
  'every request ends, and leaves no timer behind': ({ history }) => {
    const { stuck, timersLeft } = history;
    return [...(stuck ? [stuck] : []), ...(timersLeft ? [`${timersLeft} timers are left`] : [])];
  },

  'a refresh token is sent to the upstream once': (facts) =>
    facts.history.sends.flatMap((second, index) => {
      const first = facts.history.sends.slice(0, index).findLast(({ token }) => token === second.token);
      return first && !maySendAgain(facts, first, second) ? [`${nameOf(second)} was sent again`] : [];
    }),

  'an instance sends a token once, with Redis or without': (facts) =>
    facts.history.sends.flatMap((second, index) => {
      const first = facts.history.sends
        .slice(0, index)
        .findLast(({ token, instance }) => token === second.token && instance === second.instance);
      return first && !hasReasonToSendAgain(facts, first, second) ? [`${nameOf(second)} was sent again`] : [];
    }),

  'a pair whose access token is good is not renewed by a request with an older token': (facts) =>
    facts.history.sends.flatMap((send) => {
      const { token, sent } = send;
      if (!token.before || sent.at >= token.issued.at + facts.history.accessTokensLastMs) return [];
      if (facts.wasIssuedAgain(token)) return [];
      if (facts.signOutsOf(token).length > 0 || facts.wasRedisAway(token.issued, sent)) return [];
      const isAskedFor = facts.history.requests.some(
        (request) => request.token === token && request.asked && request.asked.order < sent.order,
      );
      return isAskedFor ? [] : [`${nameOf(send)} was sent, and nobody had asked for it`];
    }),

  'a spent token yields the newest pair of its chain while its window is open': (facts) =>
    facts
      .undisturbed()
      .filter((request) => isInItsWindow(facts, request))
      .flatMap((request) => {
        const { outcome, pair } = request;
        if (outcome === 'unreachable') return [];
        if (outcome !== 'renewed') return [`${nameOf(request)} in its window: ${outcome}`];
        const newest = newestBefore(facts, request);
        if (!pair || pair.generation >= newest) return [];
        return [`${nameOf(request)} got ${pair.text}, and generation ${newest} was known`];
      }),

  'a spent token reaches the upstream when its window is closed': (facts) =>
    facts.undisturbed().flatMap((request) => {
      const { token, ended, outcome } = request;
      const renewal = facts.renewal(token);
      if (!renewal || request.arrived.at <= facts.closing(token).latest) return [];
      // A process that has crashed may have lost what clients had presented to it.
      if (facts.history.crashes.length > 0 || facts.signOutsOf(token).length > 0) return [];
      const isSent = facts.history.sends.some(
        (send) =>
          send.token === token && send.sent.order > renewal.sent.order && send.sent.order < ended.order,
      );
      if (outcome !== 'renewed' && isSent) return [];
      return [`${nameOf(request)} after its window: ${outcome}, ${isSent ? '' : 'not '}sent`];
    }),

  'a spent token that is sent to the upstream is counted as a reuse': (facts) =>
    facts.history.sends.flatMap((second) => {
      const renewal = facts.renewal(second.token);
      if (!renewal || second.sent.order <= renewal.ended.order) return [];
      if (facts.wasIssuedAgain(second.token)) return [];
      if (facts.wasRedisAway(second.token.issued, second.sent) || facts.history.crashes.length > 0) return [];
      if (second.sent.at >= renewal.ended.at + lifetimes.renewedMs - SPREADS_MS) return [];
      const isFirstReuse = !facts.history.sends.some(
        (other) =>
          other.token === second.token &&
          other.sent.order > renewal.sent.order &&
          other.sent.order < second.sent.order,
      );
      const isCounted = facts.history.requests.some(
        ({ token, record }) => token.family === second.token.family && record.refreshTokenReused,
      );
      return isFirstReuse && !isCounted ? [`${nameOf(second)} was not counted`] : [];
    }),

  'only what was sent again is counted as a reuse': (facts) =>
    facts.history.requests
      .filter(({ record, token, isLost }) => {
        if (!record.refreshTokenReused || isLost || facts.wasIssuedAgain(token)) return false;
        return facts.history.sends.filter((send) => send.token === token).length < 2;
      })
      .map((request) => `${nameOf(request)} was counted`),

  'a request is rejected only after the upstream has rejected its token or its family': (facts) =>
    facts.history.requests
      .filter(({ outcome, token, ended }) => {
        if (outcome !== 'rejected' || !ended) return false;
        const families = facts.namesakesOf(token);
        return !facts.history.sends.some(
          (send) =>
            families.has(send.token.family) &&
            send.outcome === 'rejected' &&
            send.ended !== undefined &&
            send.ended.order < ended.order,
        );
      })
      .map((request) => `${nameOf(request)} was rejected`),

  'a request is ended only after a sign-out, or a sign-in in its place': (facts) =>
    facts.history.requests
      .filter(({ outcome, token, ended, arrived }) => {
        if (outcome !== 'ended' || !ended) return false;
        const isAgain = facts.isIssuedAgainBy(token, arrived);
        if (isAgain && isExcusedAgain(facts, token, arrived, ended)) return false;
        const families = facts.namesakesOf(token);
        return !facts.history.signOuts.some(
          (signOut) =>
            families.has(signOut.token.family) &&
            signOut.began.order < ended.order &&
            !(isAgain && signOut.ended && signOut.ended.order < token.issued.order),
        );
      })
      .map((request) => `${nameOf(request)} was ended`),

  'no request finds the upstream unreachable that has responded': (facts) =>
    facts.undisturbed().flatMap((request) => {
      const { token, outcome, asked, ended } = request;
      if (outcome !== 'unreachable') return [];
      const wasUnreachable = facts.history.sends.some(
        (send) =>
          send.token.family === token.family &&
          send.sent.order < ended.order &&
          (send.outcome === 'unreachable'
            ? send.ended === undefined || send.ended.at + SPREADS_MS > asked.at
            : facts.crashOf(send.instance) !== undefined),
      );
      return wasUnreachable ? [] : [`${nameOf(request)}: unreachable`];
    }),

  'after a sign-out no token of the chain yields a pair': (facts) =>
    facts.undisturbed().flatMap((request) => {
      const { token, asked, ended, outcome } = request;
      if (outcome !== 'renewed') return [];
      return facts
        .effectiveSignOuts(token, request.instance, asked, ended.at)
        .map((signOut) => `${nameOf(request)} got a pair after the sign-out of ${signOut.token.text}`);
    }),

  'after a sign-out the very token yields no pair at the same instance, with Redis or without': (facts) =>
    facts.history.requests.flatMap((request) => {
      const { token, asked, ended, outcome, instance } = request;
      if (outcome !== 'renewed' || !asked || !ended) return [];
      if (facts.wasIssuedAgain(token)) return [];
      return facts.history.signOuts
        .filter((signOut) => signOut.token === token && signOut.instance === instance)
        .filter((signOut) => !facts.isRepeated(signOut))
        .filter((signOut) => signOut.ended && signOut.ended.order < asked.order)
        .filter((signOut) => signOut.ended && ended.at < signOut.ended.at + lifetimes.unknownEndedMs)
        .map((signOut) => `${nameOf(request)} got a pair after the sign-out at ${signOut.instance}`);
    }),

  'a pair that arrives after the sign-out is given to nobody': (facts) =>
    facts.undisturbed().flatMap((request) => {
      const { pair, outcome } = request;
      const send = facts.history.sends.find(({ successor }) => successor && successor === pair);
      if (outcome !== 'renewed' || !send) return [];
      return lateFor(facts, send).map(
        ({ token }) => `${nameOf(request)} got the late ${pair?.text} after the sign-out of ${token.text}`,
      );
    }),

  'a pair that arrives after the sign-out is signed out at the upstream': (facts) =>
    facts.history.sends.flatMap((send) => {
      const { successor } = send;
      if (!successor || facts.crashOf(send.instance) || lateFor(facts, send).length === 0) return [];
      const isSignedOut = facts.history.upstreamSignOuts.includes(successor.text);
      return isSignedOut ? [] : [`${successor.text} was not signed out`];
    }),

  'a response that leaves after the sign-out sets no cookies': (facts) =>
    facts.undisturbed().flatMap((request) => {
      const { pair, leaves, given } = request;
      if (!pair || !leaves || !given || facts.wasRedisAway(pair.issued, leaves)) return [];
      return facts
        .effectiveSignOuts(pair, request.instance, leaves)
        .map(({ token }) => `${nameOf(request)} set ${given.text} after the sign-out of ${token.text}`);
    }),

  'a response sets the newest pair that a request of its instance has had, or none': (facts) =>
    facts.undisturbed().flatMap((request) => {
      const { token, instance, leaves, given } = request;
      if (!leaves || !given || facts.signOutsOf(token).length > 0) return [];
      if (facts.wasRedisAway(token.issued, leaves)) return [];
      const newest = facts.history.requests.flatMap(({ pair, ended, ...other }) =>
        pair?.family === token.family && other.instance === instance && ended && ended.order < leaves.order
          ? [pair.generation]
          : [],
      );
      return given.generation < Math.max(0, ...newest) ? [`${nameOf(request)} set ${given.text}`] : [];
    }),

  'nobody waits longer than a sign-in may take while the upstream is not being asked': (facts) =>
    facts.history.requests.flatMap((request) => {
      const { asked, ended, token } = request;
      if (!asked || !ended || facts.wasIssuedAgain(token)) return [];
      const asking = facts.history.sends
        // A sign-in may have issued the same token again, as the first one of another family.
        .filter((send) => send.token.family === token.family || send.token.text === token.text)
        .map(({ sent, ended: end, instance }) => {
          const until = end ?? facts.crashOf(instance) ?? ended;
          return { from: Math.max(sent.at, asked.at), until: Math.min(until.at, ended.at) };
        });
      const idleMs = ended.at - asked.at - lengthOf(asking);
      // A late pair is signed out at the upstream before its request ends.
      const leases = facts.history.crashes.length;
      return idleMs <= Math.max(1, leases) * signInMs + logoutMs + 1000
        ? []
        : [`${nameOf(request)} waited ${idleMs} ms without a reason`];
    }),

  'a token that a sign-in has issued again works': (facts) =>
    facts.history.requests.flatMap((request) => {
      const { token, outcome, pair, arrived } = request;
      if (!facts.isIssuedAgainBy(token, arrived) || isIssuedAgainAfter(facts, token, arrived.order))
        return [];
      if (wasInFlightAtSignIn(facts, token)) return [];
      return outcome !== 'renewed' || !pair || pair.family.number >= token.family.number
        ? []
        : [`${nameOf(request)} got ${pair?.text}, which is of an earlier sign-in`];
    }),
};

function nameOf({ token, instance }: Pick<Request | Send, 'token' | 'instance'>): string {
  return `${token.text} at ${instance}`;
}

function maySendAgain(facts: Facts, first: Send, second: Send): boolean {
  return facts.wasRedisAway(first.sent, second.sent) || hasReasonToSendAgain(facts, first, second);
}

/** A reason other than an outage. */
function hasReasonToSendAgain(facts: Facts, first: Send, second: Send): boolean {
  const { token } = second;
  const { ended } = first;
  if (facts.wasIssuedAgain(token)) return true;
  // Without a pair there is nothing to yield.
  if (ended && ended.order < second.sent.order && first.outcome !== 'renewed') return true;
  const crash = facts.crashOf(first.instance);
  const isKnown = facts.history.requests.some(
    (request) =>
      request.token === token && request.outcome === 'renewed' && request.instance === first.instance,
  );
  if (crash && crash.order < second.sent.order && !isKnown) return true;
  if (facts.signOutsOf(token).some(({ began }) => began.order < second.sent.order)) return true;
  return facts.history.requests.some(
    (request) =>
      request.token === token &&
      request.asked !== undefined &&
      request.asked.order < second.sent.order &&
      (!request.ended || request.ended.order > second.sent.order) &&
      request.arrived.at >= facts.closing(token).earliest,
  );
}

/** Of a session that neither the upstream nor a sign-out has ended. */
function isInItsWindow(facts: Facts, request: Judged): boolean {
  const { token, arrived, ended } = request;
  const { revoked } = token.family;
  if (!wasRenewedBefore(facts, request) || arrived.at >= facts.closing(token).earliest) return false;
  if (revoked && revoked.order < ended.order) return false;
  return !facts.signOutsOf(token).some(({ began }) => began.order < ended.order);
}

/** The generation of the newest pair of its chain that any request has had before it asked. */
function newestBefore({ history }: Facts, { token, asked }: Judged): number {
  const generations = history.requests.flatMap(({ pair, ended }) =>
    pair?.family === token.family && ended && ended.order < asked.order ? [pair.generation] : [],
  );
  return Math.max(0, ...generations);
}

/** Whether another request has had the pair already when this one asked. */
function wasRenewedBefore(facts: Facts, { token, asked }: Request): boolean {
  return facts.history.requests.some(
    (other) =>
      other.token === token &&
      other.outcome === 'renewed' &&
      other.ended !== undefined &&
      asked !== undefined &&
      other.ended.order < asked.order,
  );
}

function isIssuedAgainAfter({ history }: Facts, token: Request['token'], order: number): boolean {
  return history.tokens.some(({ text, issued }) => text === token.text && issued.order > order);
}

/** Whether a request with the earlier token of the same text was in flight when a sign-in issued it again. */
function wasInFlightAtSignIn({ history }: Facts, token: Request['token']): boolean {
  const signIn = history.signIns.find((each) => each.token === token);
  return history.requests.some(
    (request) =>
      request.token !== token &&
      request.token.text === token.text &&
      signIn !== undefined &&
      wasInFlightDuring(request, signIn),
  );
}

/** Whether a sign-out from before its sign-in may still be known somewhere. */
function isExcusedAgain(facts: Facts, token: Request['token'], arrived: Moment, ended: Moment): boolean {
  if (isIssuedAgainAfter(facts, token, arrived.order) || facts.mayStillBeEnded(token)) return true;
  const [first = token] = facts.history.tokens;
  return facts.wasRedisAway(first.issued, ended);
}

/** The sign-outs that were over when the pair of this refresh arrived. */
function lateFor(facts: Facts, { token, instance, ended, outcome }: Send): SignOut[] {
  if (!ended || outcome !== 'renewed' || facts.wasIssuedAgain(token)) return [];
  return facts
    .effectiveSignOuts(token, instance, ended)
    .filter((signOut) => signOut.token.generation <= token.generation)
    .filter((signOut) => !facts.wasRedisAway(signOut.token.issued, ended));
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

export function violationsIn(facts: Facts): string[] {
  return Object.entries(checks).flatMap(([sentence, check]) =>
    check(facts).map((what) => `not "${sentence}": ${what}`),
  );
}
