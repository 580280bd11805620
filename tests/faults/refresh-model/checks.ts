/** What must hold of every history, one sentence each. */

import {
  type CookieChange,
  FASTEST_SIGN_IN_MS,
  type History,
  isBefore,
  isForgotten,
  isRejection,
  type Moment,
  PRESENTED_MS,
  type Request,
  type Send,
  SPREADS_MS,
  settings,
} from './history.ts';

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
    return !history.wasRedisAway(token.family.began, ended) && isWrong(request, history);
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
        const isShared = first.instance === second.instance || !history.wasRedisAway(first.sent, second.sent);
        return isShared && !mayBeSentAgain(history, first, second);
      }),
  ),

  '(b) a pair whose access token is good is not renewed by a request with an older token': sends(
    ({ token, sent }, history) =>
      token.before &&
      sent.at < token.issued.at + history.accessTokensLastMs &&
      history.signOutsOf(token).length === 0 &&
      !history.wasRedisAway(token.issued, sent) &&
      !history.requests.some((request) => request.token === token && isBefore(request.asked, sent)),
  ),

  '(b) a spent token yields the newest pair of its chain while its window is open': undisturbed(
    ({ token, arrived, asked, ended, outcome, pair }, history) => {
      const wasRenewed = history.requests.some(
        (other) => other.token === token && other.outcome === 'renewed' && isBefore(other.ended, asked),
      );
      if (!wasRenewed || arrived.at >= history.closingOf(token, asked).earliest) return false;
      if (isForgotten(history.renewalOf(token), ended)) return false;
      if (isBefore(token.family.revoked, ended) || outcome === 'unreachable') return false;
      if (token.family.isReissued) return false;
      if (history.wasRejected(token.family, ended)) return false;
      if (history.signOutsOf(token).some(({ began }) => isBefore(began, ended))) return false;
      return !pair || pair.generation < history.newestPair(token.family, asked);
    },
  ),

  '(c) a spent token reaches the upstream when its window is closed': undisturbed(
    ({ token, instance, arrived, ended, outcome }, history) => {
      const renewal = history.renewalOf(token);
      if (!renewal || arrived.at <= history.closingOf(token, ended).latest) return false;
      // A process that has crashed may have lost what clients had presented to it. A late reply makes a fact younger.
      if (history.crashes.size > 0 || history.signOutsOf(token).length > 0) return false;
      if (history.stoodStill(instance, arrived, ended)) return false;
      const isSent = (send: Send) =>
        send.token === token && isBefore(renewal.ended, send.sent) && isBefore(send.sent, ended);
      return outcome === 'renewed' || !history.sends.some(isSent);
    },
  ),

  '(c) a spent token that is sent again is counted as a reuse': sends(({ token, sent }, history) => {
    const renewal = history.renewalOf(token);
    if (!renewal || !isBefore(renewal.ended, sent)) return false;
    if (history.crashes.size + history.standstills.length > 0) return false;
    if (history.wasRedisAway(token.issued, sent)) return false;
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
      outcome === 'rejected' && !history.wasRejected(token.family, ended),
  ),

  'a request is ended only after a sign-out, or a sign-in in its place': requests(
    ({ outcome, token, instance, asked, ended }, history) =>
      outcome === 'ended' &&
      !history.signOutsOf(token).some((signOut) => {
        const { undone } = signOut;
        const isUndone =
          undone?.instance === instance &&
          isBefore(signOut.ended, undone.began) &&
          isBefore(undone.done, asked) &&
          // A refresh that was in flight writes the end again.
          history.sends.every(
            (send) => isBefore(send.ended, undone.began) || isBefore(undone.began, send.sent),
          ) &&
          !history.wasRedisAway(signOut.began, ended);
        return isBefore(signOut.began, ended) && !isUndone;
      }),
  ),

  'no request finds the upstream unreachable that has responded': undisturbed(
    ({ token, instance, outcome, asked, ended }, history) => {
      // It has waited for another instance's verdict for too long, although it was not there itself.
      if (history.stoodStill(instance, asked, ended)) return false;
      const wasUnreachable = (send: Send) =>
        send.token.family === token.family &&
        isBefore(send.sent, ended) &&
        (send.verdict === 'unreachable'
          ? !send.ended || send.ended.at + SPREADS_MS > asked.at
          : history.wasDisturbed(send.instance));
      // What is forgotten when its token is issued again leaves an older fact in the memory of another instance.
      return outcome === 'unreachable' && !token.family.isReissued && !history.sends.some(wasUnreachable);
    },
  ),

  '(d) after a sign-out no token of the chain yields a pair': requests(
    (request, history) =>
      request.outcome === 'renewed' && history.isSignedOut(request, request.asked, request.ended),
  ),

  '(d) a pair that arrives after the sign-out is given to nobody, and signed out at the upstream': sends(
    (send, history) => {
      const { successor, token, instance, ended, verdict } = send;
      if (!successor || !ended || verdict !== 'renewed' || !history.isSignedOut(send, ended)) return false;
      // A sign-out with a newer token is no reason to discard what this one yields.
      if (history.signOutsOf(token).some((signOut) => signOut.token.generation > token.generation))
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
      if (history.isSignedOut({ token: pair, instance }, leaves)) return true;
      const { family } = pair;
      if (history.signOutsOf(pair).length > 0 || history.wasRedisAway(family.began, leaves)) return false;
      return given.generation < history.newestPair(family, leaves, instance);
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
  return !isSame && pair && leaves ? history.isSignedOut({ token: pair, instance }, leaves) : false;
}

/** A refresh of its own that the upstream refuses may clear: it says nothing of a sign-in without the old cookies. */
function clearsTooMuch(
  history: History,
  { token, instance, arrived, asked, outcome, record }: Request,
  ended: Moment,
) {
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
    ({ outcome, instance }) => outcome === 'renewed' && instance === first.instance,
  );
  if (isBefore(history.crashes.get(first.instance), sent) && !isKnown) return true;
  if (history.signOutsOf(token).some(({ began }) => isBefore(began, sent))) return true;
  return ofToken.some(({ asked, arrived, ended }) => {
    const isAsking = isBefore(asked, sent) && !isBefore(ended, sent);
    return isAsking && arrived.at >= history.closingOf(token, asked).earliest;
  });
}
