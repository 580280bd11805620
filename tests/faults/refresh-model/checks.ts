/** What must hold of every history, one sentence each. */

import {
  FASTEST_SIGN_IN_MS,
  type History,
  isBefore,
  isBetween,
  isForgotten,
  isRejection,
  isSame,
  type Moment,
  type Place,
  PRESENTED_MS,
  type Request,
  type Send,
  type SignOut,
  SPREADS_MS,
  settings,
} from './history.ts';
import { STANDSTILL_MS } from './plans.ts';

const LEASE_MS = 3000;

type Ended = Request & Required<Pick<Request, 'asked' | 'ended' | 'outcome'>>;

/** Each sentence that must hold, with what contradicts it. */
export function checksOf(history: History): Readonly<Record<string, readonly (Place | string)[]>> {
  const { sends, signOuts, upstreamSignOuts } = history;
  const ended = history.requests.filter(
    (request): request is Ended => request.ended !== undefined && request.outcome !== undefined,
  );
  // Of sessions that have always had Redis.
  const undisturbed = ended.filter(({ token, ended }) => !history.wasRedisAway(token.family.began, ended));
  return {
    'every request ends, and leaves no timer behind': history.unfinished,

    '(a) a refresh token that is spent is sent once, and by each instance once while Redis is away':
      sends.filter((second) => {
        const isAgain = (first: Send) => {
          if (first.token !== second.token || !isBefore(first.sent, second.sent)) return false;
          const isShared =
            first.instance === second.instance || !history.wasRedisAway(first.sent, second.sent);
          return isShared && !mayBeSentAgain(history, first, second);
        };
        return sends.some((send) => send.token === second.token && send.successor) && sends.some(isAgain);
      }),

    '(b) a good pair is not renewed by a request with an older token': sends.filter(({ token, sent }) => {
      if (!token.before || sent.at >= token.issued.at + history.accessTokensLastMs) return false;
      if (history.signOutsOf(token).length > 0 || history.wasRedisAway(token.issued, sent)) return false;
      return !history.requests.some((request) => request.token === token && isBefore(request.asked, sent));
    }),

    '(b) a spent token yields the newest pair of its chain while its window is open': undisturbed.filter(
      ({ token, arrived, asked, ended, outcome, pair }) => {
        const isRenewal = (other: Request) =>
          other.token === token && other.outcome === 'renewed' && isBefore(other.ended, asked);
        if (!history.requests.some(isRenewal)) return false;
        if (arrived.at >= history.closingOf(token, asked).earliest) return false;
        if (isForgotten(history.renewalOf(token), ended)) return false;
        if (isBefore(token.family.revoked, ended) || outcome === 'unreachable') return false;
        if (token.family.isReissued || history.wasRejected(token.family, ended)) return false;
        if (history.signOutsOf(token).some(({ began }) => isBefore(began, ended))) return false;
        return !pair || pair.generation < history.newestPair(token.family, asked);
      },
    ),

    '(c) a spent token reaches the upstream when its window is closed': undisturbed.filter(
      ({ token, instance, arrived, ended, outcome }) => {
        const renewal = history.renewalOf(token);
        if (!renewal || arrived.at <= history.closingOf(token, ended).latest) return false;
        // A process that has crashed may have lost what clients had presented to it. A late reply makes a fact younger.
        if (history.crashes.size > 0 || history.signOutsOf(token).length > 0) return false;
        if (history.stoodStill(instance, arrived, ended)) return false;
        const ofToken = sends.filter((send) => send.token === token);
        // A refusal is remembered for longer than the late pair that has replaced it.
        const isRefused = (send: Send) =>
          send.instance === instance && send.verdict === 'rejected' && isBefore(send.ended, renewal.ended);
        if (outcome === 'rejected' && ofToken.some(isRefused)) return false;
        return outcome === 'renewed' || !ofToken.some(({ sent }) => isBetween(renewal.ended, sent, ended));
      },
    ),

    '(c) only what was sent again is counted as a reuse': ended.filter(({ record, token }) => {
      return record.refreshTokenReused && sends.filter((send) => send.token === token).length < 2;
    }),

    'a pair that an instance gets reaches the request that asked for it': ended.filter((request) => {
      const { outcome, asked, ended } = request;
      if (outcome !== 'rejected' && outcome !== 'unreachable') return false;
      const own = sends.filter((send) => isSame(send, request) && send.successor);
      return own.some((send) => send.verdict === 'renewed' && isBetween(asked, send.ended, ended));
    }),

    'a request is rejected only after the upstream has rejected its session': ended.filter((each) => {
      return each.outcome === 'rejected' && !history.wasRejected(each.token.family, each.ended);
    }),

    'a request is ended only after a sign-out, or a sign-in in its place': ended.filter(
      ({ outcome, token, instance, asked, ended }) => {
        const isReason = ({ began, ended: over, undone }: SignOut) => {
          if (!isBefore(began, ended)) return false;
          if (undone?.instance !== instance || history.wasRedisAway(began, ended)) return true;
          if (!isBefore(over, undone.began) || !isBefore(undone.done, asked)) return true;
          // A refresh that was in flight writes the end again.
          return sends.some(
            (send) => !isBefore(send.ended, undone.began) && !isBefore(undone.began, send.sent),
          );
        };
        return outcome === 'ended' && !history.signOutsOf(token).some(isReason);
      },
    ),

    'no request finds the upstream unreachable that has responded': undisturbed.filter(
      ({ token, instance, outcome, asked, ended }) => {
        // It has waited for another instance's verdict for too long, although it was not there itself.
        if (history.stoodStill(instance, asked, ended)) return false;
        const wasUnreachable = (send: Send) => {
          if (send.token.family !== token.family || !isBefore(send.sent, ended)) return false;
          if (send.verdict !== 'unreachable') return history.wasDisturbed(send.instance);
          return !send.ended || send.ended.at + SPREADS_MS > asked.at;
        };
        // What is forgotten when its token is issued again leaves an older fact in the memory of another instance.
        return outcome === 'unreachable' && !token.family.isReissued && !sends.some(wasUnreachable);
      },
    ),

    '(d) after a sign-out no token of the chain yields a pair': ended.filter(
      (each) => each.outcome === 'renewed' && history.isSignedOut(each, each.asked, each.ended),
    ),

    '(d) a pair that arrives after the sign-out is given to nobody, and signed out at the upstream':
      sends.filter((send) => {
        const { successor, token, instance, ended, verdict } = send;
        if (!successor || !ended || verdict !== 'renewed' || !history.isSignedOut(send, ended)) return false;
        // A sign-out with a newer token is no reason to discard what this one yields.
        const isNewer = (signOut: SignOut) => signOut.token.generation > token.generation;
        if (history.signOutsOf(token).some(isNewer)) return false;
        const isGiven = history.requests.some(({ pair }) => pair === successor);
        const isSignedOutThere = upstreamSignOuts.some((each) => each.token === successor);
        const bySignIn = history.signOutsOf(token).some(({ by }) => by === 'sign-in');
        return isGiven || !(isSignedOutThere || bySignIn || history.crashes.has(instance));
      }),

    '(d) a sign-in in the place of a session signs nothing out at the upstream': upstreamSignOuts.filter(
      (each) => !history.signOutsOf(each.token).some(({ by }) => by === 'sign-out'),
    ),

    '(d) a sign-out with both cookies tells the upstream, every time': signOuts.filter((signOut) => {
      const { by, began, left } = signOut;
      const isTold = (told: Place & { sent: Moment }) => isSame(told, signOut) && isBefore(began, told.sent);
      return by === 'sign-out' && left && !upstreamSignOuts.some(isTold);
    }),

    '(e) a response sets the newest pair that its instance has had, or none after a sign-out': ended.filter(
      ({ pair, instance, leaves, given }) => {
        if (!pair || !leaves || !given) return false;
        if (history.isSignedOut({ token: pair, instance }, leaves)) return true;
        const { family } = pair;
        if (history.signOutsOf(pair).length > 0 || history.wasRedisAway(family.began, leaves)) return false;
        return given.generation < history.newestPair(family, leaves, instance);
      },
    ),

    '(f) what an instance has learned during a short outage is known to the others when it is over':
      sends.filter((second) =>
        sends.some(
          (first) =>
            first.token === second.token &&
            first.instance !== second.instance &&
            first.successor &&
            history.isSharedSince(first, second) &&
            !mayBeSentAgain(history, first, second),
        ),
      ),

    '(g) nobody waits for longer than the leases of crashed instances while the upstream is not asked':
      ended.filter(({ asked, ended, token }) => {
        const isAskedUntil = sends
          .filter((send) => send.token.family === token.family && isBefore(send.sent, ended))
          .map((send) => (send.ended ?? history.crashes.get(send.instance) ?? ended).at);
        const waitedMs = ended.at - Math.max(asked.at, ...isAskedUntil.map((at) => Math.min(at, ended.at)));
        // A late pair is signed out at the upstream before its request ends.
        const lateMs = history.standstills.length * (STANDSTILL_MS + LEASE_MS) + settings.timeouts.logoutMs;
        return waitedMs > history.crashes.size * LEASE_MS + lateMs + 1000;
      }),

    '(h) a response to an older request never touches the cookies of a newer sign-in': ended.filter(
      (request) => touchesNewer(history, request),
    ),
  };
}

/** In words. */
export function violationsIn(history: History): string[] {
  const named = (what: Place | string) =>
    typeof what === 'string' ? what : `${what.token.text} at ${what.instance}`;
  return Object.entries(checksOf(history)).flatMap(([sentence, contradictions]) =>
    contradictions.map((what) => `not "${sentence}": ${named(what)}`),
  );
}

/** Whether it clears or replaces newer cookies that the upstream still takes, and the gateway could know that. */
function touchesNewer(history: History, request: Ended): boolean {
  const { token, instance, pair, leaves, left, changed } = request;
  if (!changed || isBefore(left, changed.from.issued)) return false;
  const { from, to } = changed;
  const isOfSession = from.family === token.family;
  const isNewer = isOfSession ? from.generation > token.generation : isBefore(token.issued, from.issued);
  if (!isNewer) return false;
  if (!to) return clearsTooMuch(history, request);
  return !isOfSession && pair && leaves ? history.isSignedOut({ token: pair, instance }, leaves) : false;
}

/** A refresh of its own that the upstream refuses may clear: it says nothing of a sign-in without the old cookies. */
function clearsTooMuch(history: History, request: Ended): boolean {
  const { token, instance, arrived, asked, ended, outcome, record } = request;
  const renewal = history.renewalOf(token);
  if (record.refreshTokenReused) {
    const { presented } = renewal?.successor ?? {};
    // While Redis was away, its instance may not have known.
    const isKnown = presented && isBefore(presented, ended) && !history.wasRedisAway(presented, ended);
    const had = isKnown ? presented : renewal?.ended;
    // Until then it may have been sent before its client had the successor.
    return had !== undefined && arrived.at < had.at + PRESENTED_MS - SPREADS_MS;
  }
  const isOwn = (send: Send) =>
    isRejection(send, token.family) && send.instance === instance && isBetween(arrived, send.ended, ended);
  const isOver = history.isSignedOut(request, asked) && !isForgotten(renewal, asked);
  if (outcome === 'rejected' && !isOver && history.sends.some(isOwn)) return false;
  const signIns = history
    .signOutsOf(token)
    // One that ends the session while the request decides is too late for it.
    .filter((end) => end.by === 'sign-in' && history.isNoticed(end, request, asked))
    .map((end) => end.ended?.at ?? 0);
  return signIns.length
    ? arrived.at < Math.max(...signIns) + PRESENTED_MS - SPREADS_MS
    : ended.at >= arrived.at + FASTEST_SIGN_IN_MS;
}

/** For another reason than an outage. */
function mayBeSentAgain(history: History, first: Send, { token, instance, sent }: Send): boolean {
  // Without a pair there is nothing to yield.
  if (isBefore(first.ended, sent) && first.verdict !== 'renewed') return true;
  if (isForgotten(first, sent)) return true;
  // Its lease has ended before its verdict was written.
  const isNoted = first.ended && (first.instance === instance || first.ended.at + SPREADS_MS <= sent.at);
  if (!isNoted && history.stoodStill(first.instance, first.sent, sent)) return true;
  const ofToken = history.requests.filter((request) => request.token === token);
  const isOfFirst = (request: Request) =>
    request.outcome === 'renewed' &&
    request.instance === first.instance &&
    isBefore(first.sent, request.ended);
  if (isBefore(history.crashes.get(first.instance), sent) && !ofToken.some(isOfFirst)) return true;
  if (history.signOutsOf(token).some(({ began }) => isBefore(began, sent))) return true;
  return ofToken.some(({ asked, arrived, ended }) => {
    if (!asked || !isBefore(asked, sent) || isBefore(ended, sent)) return false;
    return arrived.at >= history.closingOf(token, asked).earliest;
  });
}
