/** What must hold of every history, one sentence each. */

import {
  closingOf,
  FASTEST_SIGN_IN_MS,
  firstPresentation,
  isBefore,
  isForgotten,
  isNoticed,
  isSignedOut,
  newestPair,
  PRESENTED_MS,
  rejectionsOf,
  renewalOf,
  SPREADS_MS,
  settings,
  signOutsOf,
  stoodStill,
  wasRedisAway,
} from './conclusions.ts';
import type { CookieChange, History, Moment, Request, Send } from './history.ts';

const LEASE_MS = 3000;

/** Gives what contradicts the sentence, in words. */
type Check = (history: History) => string[];

const sends = (isWrong: (send: Send, history: History) => unknown): Check => {
  return (history) => history.sends.filter((send) => isWrong(send, history)).map(nameOf);
};

type Ended = Request & Required<Pick<Request, 'asked' | 'ended' | 'outcome'>>;

const requests = (isWrong: (request: Ended, history: History) => unknown): Check => {
  const hasEnded = (request: Request): request is Ended =>
    request.asked !== undefined && request.ended !== undefined && request.outcome !== undefined;
  return (history) =>
    history.requests
      .filter(hasEnded)
      .filter((request) => isWrong(request, history))
      .map(nameOf);
};

/** Of the requests of sessions that have always had Redis. */
const undisturbed = (isWrong: (request: Ended, history: History) => unknown): Check =>
  requests((request, history) => {
    const { token, ended } = request;
    return !wasRedisAway(history, token.family.began, ended) && isWrong(request, history);
  });

export const checks: Readonly<Record<string, Check>> = {
  'every request ends, and leaves no timer behind': ({ stuck, timersLeft }) => [
    ...(stuck ? [stuck] : []),
    ...(timersLeft ? [`${timersLeft} timers are left`] : []),
  ],

  '(a) a refresh token that is spent is sent once, and by each instance once while Redis is away': sends(
    (second, history) =>
      history.sends.some((send) => send.token === second.token && send.successor) &&
      history.sends.some((first) => {
        if (first.token !== second.token || !isBefore(first.sent, second.sent)) return false;
        const isShared =
          first.instance === second.instance || !wasRedisAway(history, first.sent, second.sent);
        return isShared && !mayBeSentAgain(history, first, second);
      }),
  ),

  '(b) a pair whose access token is good is not renewed by a request with an older token': sends(
    ({ token, sent }, history) =>
      token.before &&
      sent.at < token.issued.at + history.accessTokensLastMs &&
      signOutsOf(history, token).length === 0 &&
      !wasRedisAway(history, token.issued, sent) &&
      !history.requests.some((request) => request.token === token && isBefore(request.asked, sent)),
  ),

  '(b) a spent token yields the newest pair of its chain while its window is open': undisturbed(
    ({ token, arrived, asked, ended, outcome, pair }, history) => {
      const wasRenewed = history.requests.some(
        (other) => other.token === token && other.outcome === 'renewed' && isBefore(other.ended, asked),
      );
      if (!wasRenewed || arrived.at >= closingOf(history, token, asked).earliest) return false;
      if (isForgotten(renewalOf(history, token), ended)) return false;
      if (isBefore(token.family.revoked, ended) || outcome === 'unreachable') return false;
      if (token.family.isReissued) return false;
      if (rejectionsOf(history, token.family).some((send) => isBefore(send.ended, ended))) return false;
      if (signOutsOf(history, token).some(({ began }) => isBefore(began, ended))) return false;
      return !pair || pair.generation < newestPair(history, token.family, asked);
    },
  ),

  '(c) a spent token reaches the upstream when its window is closed': undisturbed(
    ({ token, instance, arrived, ended, outcome }, history) => {
      const renewal = renewalOf(history, token);
      if (!renewal || arrived.at <= closingOf(history, token, ended).latest) return false;
      // A process that has crashed may have lost what clients had presented to it. A late reply makes a fact younger.
      if (history.crashes.size > 0 || signOutsOf(history, token).length > 0) return false;
      if (stoodStill(history, instance, arrived, ended)) return false;
      const isSent = (send: Send) =>
        send.token === token && isBefore(renewal.ended, send.sent) && isBefore(send.sent, ended);
      return outcome === 'renewed' || !history.sends.some(isSent);
    },
  ),

  '(c) a spent token that is sent again is counted as a reuse': sends(({ token, sent }, history) => {
    const renewal = renewalOf(history, token);
    if (!renewal || !isBefore(renewal.ended, sent)) return false;
    if (history.crashes.size + history.standstills.length > 0) return false;
    if (wasRedisAway(history, token.issued, sent)) return false;
    if (isForgotten(renewal, sent)) return false;
    return !history.requests.some((each) => each.token === token && each.record.refreshTokenReused);
  }),

  '(c) only what was sent again is counted as a reuse': requests(
    ({ record, token }, history) =>
      record.refreshTokenReused && history.sends.filter((send) => send.token === token).length < 2,
  ),

  'a pair that an instance gets reaches the request that asked for it': requests(
    ({ outcome, token, instance, asked, ended }, history) =>
      (outcome === 'rejected' || outcome === 'unreachable') &&
      history.sends.some(
        (send) =>
          send.token === token &&
          send.instance === instance &&
          send.successor &&
          send.verdict === 'renewed' &&
          isBefore(asked, send.ended) &&
          isBefore(send.ended, ended),
      ),
  ),

  'a request is rejected only after the upstream has rejected its session': requests(
    ({ outcome, token, ended }, history) =>
      outcome === 'rejected' &&
      !rejectionsOf(history, token.family).some((send) => isBefore(send.ended, ended)),
  ),

  'a request is ended only after a sign-out, or a sign-in in its place': requests(
    ({ outcome, token, instance, asked, ended }, history) =>
      outcome === 'ended' &&
      !signOutsOf(history, token).some((signOut) => {
        const { undone } = signOut;
        const isUndone =
          undone?.instance === instance &&
          isBefore(signOut.ended, undone.began) &&
          isBefore(undone.done, asked) &&
          // A refresh that was in flight writes the end again.
          history.sends.every(
            (send) => isBefore(send.ended, undone.began) || isBefore(undone.began, send.sent),
          ) &&
          !wasRedisAway(history, signOut.began, ended);
        return isBefore(signOut.began, ended) && !isUndone;
      }),
  ),

  'no request finds the upstream unreachable that has responded': undisturbed(
    ({ token, instance, outcome, asked, ended }, history) => {
      // It has waited for another instance's verdict for too long, although it was not there itself.
      if (stoodStill(history, instance, asked, ended)) return false;
      const wasUnreachable = (send: Send) =>
        send.token.family === token.family &&
        isBefore(send.sent, ended) &&
        (send.verdict === 'unreachable'
          ? !send.ended || send.ended.at + SPREADS_MS > asked.at
          : history.crashes.has(send.instance) || stoodStill(history, send.instance));
      // What is forgotten when its token is issued again leaves an older fact in the memory of another instance.
      return outcome === 'unreachable' && !token.family.isReissued && !history.sends.some(wasUnreachable);
    },
  ),

  '(d) after a sign-out no token of the chain yields a pair': requests(
    (request, history) =>
      request.outcome === 'renewed' && isSignedOut(history, request, request.asked, request.ended),
  ),

  '(d) a pair that arrives after the sign-out is given to nobody, and signed out at the upstream': sends(
    (send, history) => {
      const { successor, token, instance, ended, verdict } = send;
      if (!successor || !ended || verdict !== 'renewed' || !isSignedOut(history, send, ended)) return false;
      // A sign-out with a newer token is no reason to discard what this one yields.
      if (signOutsOf(history, token).some((signOut) => signOut.token.generation > token.generation))
        return false;
      const isGiven = history.requests.some(({ pair }) => pair === successor);
      const isSignedOutThere = history.upstreamSignOuts.some((each) => each.token === successor);
      return isGiven || !(isSignedOutThere || history.crashes.has(instance));
    },
  ),

  '(d) a sign-out with both cookies tells the upstream, every time': ({ signOuts, upstreamSignOuts }) =>
    signOuts
      .filter(
        ({ by, token, instance, began, left }) =>
          by === 'sign-out' &&
          left &&
          !upstreamSignOuts.some(
            (told) => told.token === token && told.instance === instance && isBefore(began, told.sent),
          ),
      )
      .map(nameOf),

  '(e) a response sets the newest pair that its instance has had, or none after a sign-out': requests(
    ({ pair, instance, leaves, given }, history) => {
      if (!pair || !leaves || !given) return false;
      if (isSignedOut(history, { token: pair, instance }, leaves)) return true;
      const { family } = pair;
      if (signOutsOf(history, pair).length > 0 || wasRedisAway(history, family.began, leaves)) return false;
      return given.generation < newestPair(history, family, leaves, instance);
    },
  ),

  '(g) nobody waits for longer than the leases of crashed instances while the upstream is not asked':
    requests(({ asked, ended, token }, history) => {
      const isAskedUntil = history.sends
        .filter((send) => send.token.family === token.family && isBefore(send.sent, ended))
        .map((send) => (send.ended ?? history.crashes.get(send.instance) ?? ended).at);
      const waitedMs = ended.at - Math.max(asked.at, ...isAskedUntil.map((at) => Math.min(at, ended.at)));
      // A late pair is signed out at the upstream before its request ends.
      const stoodStillMs = history.standstills.reduce((sum, { ms }) => sum + ms + LEASE_MS, 0);
      return waitedMs > history.crashes.size * LEASE_MS + stoodStillMs + settings.timeouts.logoutMs + 1000;
    }),

  '(h) a response to an older request never touches the cookies of a newer sign-in': (history) =>
    history.cookieChanges
      .filter((change) => touchesNewer(history, change))
      .map(({ request }) => nameOf(request)),
};

export function violationsIn(history: History): string[] {
  return Object.entries(checks).flatMap(([sentence, check]) =>
    check(history).map((what) => `not "${sentence}": ${what}`),
  );
}

function nameOf({ token, instance }: Pick<Request, 'token' | 'instance'>): string {
  return `${token.text} at ${instance}`;
}

/** Whether it clears or replaces newer cookies that the upstream still takes, and the gateway could know that. */
function touchesNewer(history: History, { request, from, to, wasLive }: CookieChange): boolean {
  const { token, instance, ended, pair, leaves, left } = request;
  if (!from || !wasLive || !ended || isBefore(left, from.issued)) return false;
  const isSame = from.family === token.family;
  const isNewer = isSame ? from.generation > token.generation : isBefore(token.issued, from.issued);
  if (!isNewer) return false;
  if (!to) return clearsTooMuch(history, request, ended);
  return !isSame && pair && leaves ? isSignedOut(history, { token: pair, instance }, leaves) : false;
}

/** A refresh of its own that the upstream refuses may clear: it says nothing of a sign-in without the old cookies. */
function clearsTooMuch(
  history: History,
  { token, instance, arrived, asked, outcome, record }: Request,
  ended: Moment,
) {
  const { successor, ended: renewed } = renewalOf(history, token) ?? {};
  if (record.refreshTokenReused) {
    const had = firstPresentation(history, successor, ended) ?? renewed;
    // Until then it may have been sent before its client had the successor.
    return had !== undefined && arrived.at < had.at + PRESENTED_MS - SPREADS_MS;
  }
  const isOwn = (send: Send) =>
    send.instance === instance && isBefore(arrived, send.ended) && isBefore(send.ended, ended);
  const isOver =
    isSignedOut(history, { token, instance }, asked ?? ended) &&
    !isForgotten(renewalOf(history, token), asked ?? ended);
  if (outcome === 'rejected' && !isOver && rejectionsOf(history, token.family).some(isOwn)) return false;
  const signIns = signOutsOf(history, token)
    // One that ends the session while the request decides is too late for it.
    .filter((end) => end.by === 'sign-in' && isNoticed(history, end, { token, instance }, asked ?? ended))
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
  if (!isNoted && stoodStill(history, first.instance, first.sent, sent)) return true;
  const ofToken = history.requests.filter((request) => request.token === token);
  const isKnown = ofToken.some(
    ({ outcome, instance }) => outcome === 'renewed' && instance === first.instance,
  );
  if (isBefore(history.crashes.get(first.instance), sent) && !isKnown) return true;
  if (signOutsOf(history, token).some(({ began }) => isBefore(began, sent))) return true;
  return ofToken.some(({ asked, arrived, ended }) => {
    const isAsking = isBefore(asked, sent) && !isBefore(ended, sent);
    return isAsking && arrived.at >= closingOf(history, token, asked).earliest;
  });
}
