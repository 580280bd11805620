/** What the checks derive from a history: windows, sign-outs that count, and what a fault excuses. */

import { lifetimesFor } from '../../../src/gateway/refresh/facts.ts';
import { testSettings } from '../../support/world.ts';
import type { Family, History, Moment, Request, Send, SignOut, Token } from './history.ts';

/** Shorter than the defaults where that saves steps. */
export const settings = testSettings({
  UPSTREAM_URL: 'http://upstream.test',
  IDP_URL: 'http://identity-provider.test',
  REFRESH_REPLAY_SECONDS: '60',
  TIMEOUT_SIGN_IN_MS: '5000',
  TIMEOUT_LOGOUT_MS: '2000',
});
export const PRESENTED_MS = 10_000;
/** From the loss of the cookies until the user has been at the identity provider. */
export const FASTEST_SIGN_IN_MS = 1000;
/** More than the instances need to notify each other through Redis. */
export const SPREADS_MS = 200;
export const lifetimes = lifetimesFor(settings);
const NEVER = Number.POSITIVE_INFINITY;

/** Whether both have happened, and the first one came first. */
export function isBefore(one: Moment | undefined, other: Moment | undefined): boolean {
  return one !== undefined && other !== undefined && one.order < other.order;
}

/** The send that exchanged this token, if its instance had the pair. */
export function renewalOf({ sends }: History, token: Token) {
  for (const { token: sent, ended, successor, verdict } of sends) {
    if (sent === token && verdict === 'renewed' && ended && successor) return { ended, successor };
  }
  return undefined;
}

/** Whether nothing may be known of a renewal any more. */
export function isForgotten(renewal: Pick<Send, 'ended'> | undefined, by: Moment): boolean {
  return renewal?.ended !== undefined && by.at >= renewal.ended.at + lifetimes.renewedMs - SPREADS_MS;
}

export function firstPresentation(history: History, token: Token | undefined, before?: Moment) {
  const first = history.presentations.find((each) => each.token === token)?.moment;
  return !before || isBefore(first, before) ? first : undefined;
}

/**
 * When the window of a spent token closes, by the arrival of a request: the earliest and the latest time.
 *
 * @param by what has happened later keeps it open for no longer
 */
export function closingOf(
  history: History,
  token: Token,
  by?: Moment,
): { readonly earliest: number; readonly latest: number } {
  const renewal = renewalOf(history, token);
  if (!renewal) return { earliest: NEVER, latest: NEVER };
  const { successor, ended } = renewal;
  // A response that is on its way with the successor keeps it open, unless its instance crashes. An instance that has no
  // Redis does not learn of those of others.
  const ways = history.requests.filter(
    (each) => each.pair === successor && (!by || isBefore(each.ended, by)),
  );
  const surelyFrom = ways.map(({ leaves }) =>
    leaves && !wasRedisAway(history, ended, by ?? leaves)
      ? leaves.at - lifetimes.replayMs / 2 - SPREADS_MS
      : 0,
  );
  const perhapsFrom = ways.map(({ leaves }) => leaves?.at ?? NEVER);
  const presentedAt = firstPresentation(history, successor)?.at ?? NEVER;
  const presentedBy = firstPresentation(history, successor, by)?.at ?? NEVER;
  const next = history.sends.find((send) => send.token === successor && send.successor)?.arrived;
  const spentAt = presentedAt < NEVER ? (next?.at ?? NEVER) : NEVER;
  const knownAt = renewalOf(history, successor)?.ended.at ?? NEVER;
  const surelyUntil = Math.min(
    Math.max(ended.at, ...surelyFrom) + lifetimes.replayMs,
    presentedAt + PRESENTED_MS,
  );
  const perhapsUntil =
    presentedBy < NEVER
      ? presentedBy + PRESENTED_MS
      : Math.max(ended.at, ...perhapsFrom) + lifetimes.replayMs;
  return {
    earliest: Math.min(surelyUntil + 1, spentAt, closingOf(history, successor, by).earliest),
    latest: SPREADS_MS + Math.min(perhapsUntil, Math.max(presentedBy, knownAt)),
  };
}

/** Whether an instance was without Redis at any time in between. */
export function wasRedisAway({ outages }: History, from: Moment, to: Moment): boolean {
  return outages.some(
    ({ began, ended }) => began.at <= to.at + SPREADS_MS && (!ended || ended.at + SPREADS_MS >= from.at),
  );
}

/** When instances had the upstream's word that a token of this session is not renewed. */
export function rejectionsOf({ sends }: History, family: Family): Send[] {
  return sends.filter(({ token, verdict }) => token.family === family && verdict === 'rejected');
}

/** Whether the process stood still, after one moment and before the other. */
export function stoodStill(history: History, name: string, after?: Moment, before?: Moment): boolean {
  return history.standstills.some(
    ({ instance, began }) =>
      instance === name && (!after || isBefore(after, began)) && (!before || isBefore(began, before)),
  );
}

/** The generation of the newest pair of the session that such requests have had before this moment. */
export function newestPair({ requests }: History, family: Family, before: Moment, instance?: string): number {
  const generations = requests
    .filter((request) => isBefore(request.ended, before) && (!instance || request.instance === instance))
    .map(({ pair }) => (pair?.family === family ? pair.generation : 0));
  return Math.max(0, ...generations);
}

export function signOutsOf({ signOuts }: History, { family }: Token): SignOut[] {
  return signOuts.filter(({ token }) => token.family === family);
}

/**
 * Whether the first sign-out of the session was over by then, and has ended this token for this instance until that
 * moment. A repeated one adds nothing.
 */
export function isSignedOut(
  history: History,
  { token, instance }: Pick<Request, 'token' | 'instance'>,
  by: Moment,
  until = by,
): boolean {
  const signOuts = signOutsOf(history, token).filter(({ undone }) => !undone);
  const [signOut] = signOuts;
  // Of two at the same time, either may be the one that ends the rest of the chain.
  if (signOuts.some(({ began, ended }) => isBefore(began, signOut?.ended) && !isBefore(ended, by)))
    return false;
  if (!signOut?.ended) return false;
  const isShared = isSharedBy(history, signOut, token.family, until);
  const isFound = isShared
    ? isLinked(signOut, token)
    : signOut.token === token && signOut.instance === instance;
  return isFound && until.at < signOut.ended.at + lifetimes.endedMs - SPREADS_MS;
}

/** Whether the process knew of this end of the session. */
export function isNoticed(
  history: History,
  end: SignOut,
  { token, instance }: Pick<Request, 'token' | 'instance'>,
  by: Moment,
): boolean {
  if (!isBefore(end.ended, by)) return false;
  return isSharedBy(history, end, token.family, by) || (end.token === token && end.instance === instance);
}

/** Otherwise it is remembered by its instance alone, and for its token alone. */
function isSharedBy(history: History, end: SignOut, family: Family, until: Moment): boolean {
  return !family.isReissued && isKnown(history, end) && !wasRedisAway(history, family.began, until);
}

/** Whether a refresh had issued or spent the token of this sign-out, or was about to spend it. */
function isKnown(history: History, { token, began }: SignOut): boolean {
  if (token.before && began.at - token.issued.at < lifetimes.issuedMs) return true;
  const isKnownBy = (send: Send) => {
    // Without its lease, the token is known when its verdict is written.
    const hasNoLease = history.crashes.has(send.instance) || stoodStill(history, send.instance);
    const noted = (send.ended?.at ?? NEVER) + (hasNoLease ? SPREADS_MS : 0);
    if (!isBefore(send.ended, began) || began.at < noted) return !hasNoLease;
    return send.verdict === 'renewed' && send.successor && began.at < noted + lifetimes.renewedMs;
  };
  return history.sends.some((send) => send.token === token && isBefore(send.sent, began) && isKnownBy(send));
}

/** A sign-out follows the chain to its end at once; a request with an older token follows it whenever it comes. */
function isLinked({ token: signedOut, began }: SignOut, token: Token): boolean {
  for (let each = token; each.before && each.generation > signedOut.generation; each = each.before) {
    if (each.issued.at + lifetimes.renewedMs <= began.at) return false;
  }
  return true;
}
