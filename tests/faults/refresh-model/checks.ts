/** What must hold of every history, one sentence each. */

import {
  type CookieChange,
  FASTEST_SIGN_IN_MS,
  type History,
  isBefore,
  isForgotten,
  isRejection,
  type Moment,
  type Place,
  PRESENTED_MS,
  type Request,
  type Send,
  type SignOut,
  SPREADS_MS,
  settings,
} from './history.ts';

const LEASE_MS = 3000;

type Ended = Request & Required<Pick<Request, 'asked' | 'ended' | 'outcome'>>;

/** Each sentence that must hold, with what contradicts it, in words. */
export function checksOf(history: History): Readonly<Record<string, readonly string[]>> {
  const { sends, signOuts, upstreamSignOuts, stuck, timersLeft } = history;
  const ended = history.requests.filter(
    (request): request is Ended => request.ended !== undefined && request.outcome !== undefined,
  );
  // Of sessions that have always had Redis.
  const undisturbed = ended.filter(({ token, ended }) => !history.wasRedisAway(token.family.began, ended));
  return {
    'every request ends, and leaves no timer behind': [
      ...(stuck ? [stuck] : []),
      ...(timersLeft ? [`${timersLeft} timers are left`] : []),
    ],

    '(a) a refresh token that is spent is sent once, and by each instance once while Redis is away': named(
      sends.filter((second) => {
        const isAgain = (first: Send) => {
          if (first.token !== second.token || !isBefore(first.sent, second.sent)) return false;
          const isShared =
            first.instance === second.instance || !history.wasRedisAway(first.sent, second.sent);
          return isShared && !mayBeSentAgain(history, first, second);
        };
        return sends.some((send) => send.token === second.token && send.successor) && sends.some(isAgain);
      }),
    ),

    '(b) a pair whose access token is good is not renewed by a request with an older token': named(
      sends.filter(({ token, sent }) => {
        if (!token.before || sent.at >= token.issued.at + history.accessTokensLastMs) return false;
        if (history.signOutsOf(token).length > 0 || history.wasRedisAway(token.issued, sent)) return false;
        return !history.requests.some((request) => request.token === token && isBefore(request.asked, sent));
      }),
    ),

    '(b) a spent token yields the newest pair of its chain while its window is open': named(
      undisturbed.filter(({ token, arrived, asked, ended, outcome, pair }) => {
        const wasRenewed = history.requests.some(
          (other) => other.token === token && other.outcome === 'renewed' && isBefore(other.ended, asked),
        );
        if (!wasRenewed || arrived.at >= history.closingOf(token, asked).earliest) return false;
        if (isForgotten(history.renewalOf(token), ended)) return false;
        if (isBefore(token.family.revoked, ended) || outcome === 'unreachable') return false;
        if (token.family.isReissued || history.wasRejected(token.family, ended)) return false;
        if (history.signOutsOf(token).some(({ began }) => isBefore(began, ended))) return false;
        return !pair || pair.generation < history.newestPair(token.family, asked);
      }),
    ),

    '(c) a spent token reaches the upstream when its window is closed': named(
      undisturbed.filter(({ token, instance, arrived, ended, outcome }) => {
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
        const isSent = ({ sent }: Send) => isBefore(renewal.ended, sent) && isBefore(sent, ended);
        return outcome === 'renewed' || !ofToken.some(isSent);
      }),
    ),

    '(c) a spent token that is sent again is counted as a reuse': named(
      sends.filter(({ token, sent }) => {
        const renewal = history.renewalOf(token);
        if (!renewal || !isBefore(renewal.ended, sent) || isForgotten(renewal, sent)) return false;
        if (history.crashes.size + history.standstills.length > 0) return false;
        if (history.wasRedisAway(token.issued, sent)) return false;
        return !history.requests.some((each) => each.token === token && each.record.refreshTokenReused);
      }),
    ),

    '(c) only what was sent again is counted as a reuse': named(
      ended.filter(({ record, token }) => {
        return record.refreshTokenReused && sends.filter((send) => send.token === token).length < 2;
      }),
    ),

    'a pair that an instance gets reaches the request that asked for it': named(
      ended.filter(({ outcome, token, instance, asked, ended }) => {
        const isOwnPair = (send: Send) => {
          if (send.token !== token || send.instance !== instance) return false;
          if (!send.successor || send.verdict !== 'renewed') return false;
          return isBefore(asked, send.ended) && isBefore(send.ended, ended);
        };
        return (outcome === 'rejected' || outcome === 'unreachable') && sends.some(isOwnPair);
      }),
    ),

    'a request is rejected only after the upstream has rejected its session': named(
      ended.filter((each) => {
        return each.outcome === 'rejected' && !history.wasRejected(each.token.family, each.ended);
      }),
    ),

    'a request is ended only after a sign-out, or a sign-in in its place': named(
      ended.filter(({ outcome, token, instance, asked, ended }) => {
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
      }),
    ),

    'no request finds the upstream unreachable that has responded': named(
      undisturbed.filter(({ token, instance, outcome, asked, ended }) => {
        // It has waited for another instance's verdict for too long, although it was not there itself.
        if (history.stoodStill(instance, asked, ended)) return false;
        const wasUnreachable = (send: Send) => {
          if (send.token.family !== token.family || !isBefore(send.sent, ended)) return false;
          if (send.verdict !== 'unreachable') return history.wasDisturbed(send.instance);
          return !send.ended || send.ended.at + SPREADS_MS > asked.at;
        };
        // What is forgotten when its token is issued again leaves an older fact in the memory of another instance.
        return outcome === 'unreachable' && !token.family.isReissued && !sends.some(wasUnreachable);
      }),
    ),

    '(d) after a sign-out no token of the chain yields a pair': named(
      ended.filter((each) => each.outcome === 'renewed' && history.isSignedOut(each, each.asked, each.ended)),
    ),

    '(d) a pair that arrives after the sign-out is given to nobody, and signed out at the upstream': named(
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
    ),

    '(d) a sign-in in the place of a session signs nothing out at the upstream': named(
      upstreamSignOuts.filter((each) => !history.signOutsOf(each.token).some(({ by }) => by === 'sign-out')),
    ),

    '(d) a sign-out with both cookies tells the upstream, every time': named(
      signOuts.filter(({ by, token, instance, began, left }) => {
        const isTold = upstreamSignOuts.some(
          (told) => told.token === token && told.instance === instance && isBefore(began, told.sent),
        );
        return by === 'sign-out' && left && !isTold;
      }),
    ),

    '(e) a response sets the newest pair that its instance has had, or none after a sign-out': named(
      ended.filter(({ pair, instance, leaves, given }) => {
        if (!pair || !leaves || !given) return false;
        if (history.isSignedOut({ token: pair, instance }, leaves)) return true;
        const { family } = pair;
        if (history.signOutsOf(pair).length > 0 || history.wasRedisAway(family.began, leaves)) return false;
        return given.generation < history.newestPair(family, leaves, instance);
      }),
    ),

    '(g) nobody waits for longer than the leases of crashed instances while the upstream is not asked': named(
      ended.filter(({ asked, ended, token }) => {
        const isAskedUntil = sends
          .filter((send) => send.token.family === token.family && isBefore(send.sent, ended))
          .map((send) => (send.ended ?? history.crashes.get(send.instance) ?? ended).at);
        const waitedMs = ended.at - Math.max(asked.at, ...isAskedUntil.map((at) => Math.min(at, ended.at)));
        // A late pair is signed out at the upstream before its request ends.
        const stoodStillMs = history.standstills.reduce((sum, { ms }) => sum + ms + LEASE_MS, 0);
        return waitedMs > history.crashes.size * LEASE_MS + stoodStillMs + settings.timeouts.logoutMs + 1000;
      }),
    ),

    '(h) a response to an older request never touches the cookies of a newer sign-in': named(
      history.cookieChanges.filter((change) => touchesNewer(history, change)).map(({ request }) => request),
    ),
  };
}

export function violationsIn(history: History): string[] {
  return Object.entries(checksOf(history)).flatMap(([sentence, contradictions]) =>
    contradictions.map((what) => `not "${sentence}": ${what}`),
  );
}

function named(wrong: readonly Place[]): string[] {
  return wrong.map(({ token, instance }) => `${token.text} at ${instance}`);
}

/** Whether it clears or replaces newer cookies that the upstream still takes, and the gateway could know that. */
function touchesNewer(history: History, { request, from, to, wasLive }: CookieChange): boolean {
  const { token, instance, ended, pair, leaves, left } = request;
  if (!from || !wasLive || !ended || isBefore(left, from.issued)) return false;
  const isSame = from.family === token.family;
  const isNewer = isSame ? from.generation > token.generation : isBefore(token.issued, from.issued);
  if (!isNewer) return false;
  if (!to) return clearsTooMuch(history, request, ended);
  return !isSame && pair && leaves ? history.isSignedOut({ token: pair, instance }, leaves) : false;
}

/** A refresh of its own that the upstream refuses may clear: it says nothing of a sign-in without the old cookies. */
function clearsTooMuch(history: History, request: Request, ended: Moment): boolean {
  const { token, instance, arrived, asked, outcome, record } = request;
  const { successor, ended: renewed } = history.renewalOf(token) ?? {};
  if (record.refreshTokenReused) {
    const had = history.firstPresentation(successor, ended) ?? renewed;
    // Until then it may have been sent before its client had the successor.
    return had !== undefined && arrived.at < had.at + PRESENTED_MS - SPREADS_MS;
  }
  const isOwn = (send: Send) =>
    isRejection(send, token.family) &&
    send.instance === instance &&
    isBefore(arrived, send.ended) &&
    isBefore(send.ended, ended);
  const isOver =
    history.isSignedOut({ token, instance }, asked ?? ended) &&
    !isForgotten(history.renewalOf(token), asked ?? ended);
  if (outcome === 'rejected' && !isOver && history.sends.some(isOwn)) return false;
  const signIns = history
    .signOutsOf(token)
    // One that ends the session while the request decides is too late for it.
    .filter((end) => end.by === 'sign-in' && history.isNoticed(end, { token, instance }, asked ?? ended))
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
  const isKnown = ofToken.some(
    ({ outcome, instance, ended }) =>
      outcome === 'renewed' && instance === first.instance && isBefore(first.sent, ended),
  );
  if (isBefore(history.crashes.get(first.instance), sent) && !isKnown) return true;
  if (history.signOutsOf(token).some(({ began }) => isBefore(began, sent))) return true;
  return ofToken.some(({ asked, arrived, ended }) => {
    const isAsking = isBefore(asked, sent) && !isBefore(ended, sent);
    return isAsking && arrived.at >= history.closingOf(token, asked).earliest;
  });
}
